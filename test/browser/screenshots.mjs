// node screenshots.mjs REPORT.html FOLDER: the pictures of the README, small.
import { launch, watched, showAll } from './check.mjs';

const [file, out] = process.argv.slice(2);
const browser = await launch();
async function shot(name, colorScheme, section, height) {
  const page = await watched(browser, { colorScheme, viewport: { width: 1240, height }, deviceScaleFactor: 1 });
  await page.goto(`file://${file}`);
  await showAll(page);
  await page.evaluate(() => scrollTo(0, 0));
  if (section) await page.locator(section).screenshot({ path: `${out}/${name}.png` });
  else await page.screenshot({ path: `${out}/${name}.png` });
  if (page.complaints.length) throw new Error(page.complaints.join('\n'));
  await page.context().close();
}
await shot('report', 'light', null, 1020);
await shot('report-dark', 'dark', null, 1020);
await shot('report-ranks', 'light', '#s-heat', 900);
await shot('report-outliers', 'light', '#s-outliers', 900);
await browser.close();
