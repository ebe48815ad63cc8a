// node screenshots.mjs REPORT.html FOLDER [COUNTERS.html]: the pictures of the README and of docs, small.
import { launch, watched, showAll } from './check.mjs';

const [file, out, counters] = process.argv.slice(2);
const browser = await launch();
async function shot(name, colorScheme, section, height, of = file) {
  const page = await watched(browser, {
    colorScheme,
    viewport: { width: 1240, height },
    deviceScaleFactor: 1,
  });
  await page.goto(`file://${of}`);
  if (of === file) await showAll(page);
  else await page.waitForFunction(() => document.getElementById('c-carried').dataset.drawn === '1');
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
if (counters) await shot('counters', 'light', null, 1020, counters);
await browser.close();
