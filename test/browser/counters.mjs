// node counters.mjs COUNTERS.html: counters.html of test_counters_page in a real browser.
import { readFileSync } from 'node:fs';
import { launch, watched, pixels, parseCsv, ok, same, finish } from './check.mjs';

const file = process.argv[2];
const browser = await launch();
async function open(options) {
  const page = await watched(browser, options);
  await page.goto(`file://${file}`);
  for (const id of await page.locator('.chart').evaluateAll((list) => list.map((c) => c.id))) {
    await page.locator(`#${id}`).scrollIntoViewIfNeeded();
    await page.waitForFunction((i) => document.getElementById(i).dataset.drawn === '1', id);
  }
  return page;
}
const HOSTILE = '</script><img src=x onerror=alert(1)>';

let page = await open();
same(
  await page.locator('section h2').allTextContents(),
  [
    'What stands out',
    'Bytes a second and share of the link',
    'What was compared',
    'NICs, GPUs and host',
    'Top counters',
    'Side by side',
    'Groups of counters',
    'Rates over time',
    'Method',
  ],
  'order of the page'
);
same(await page.locator('#nav a').count(), 9, 'a link to every section');
same(
  await page.locator('.chart').first().getAttribute('id'),
  'c-carried',
  'the first chart is what devices carried'
);
for (const [id, colour] of [
  ['c-carried', '#0072b2'],
  ['c-changed', '#0072b2'],
  ['c-top', '#0072b2'],
  ['c-heat', '#005c9e'],
  ['c-groups', '#009e73'],
  ['c-rates', '#0072b2'],
]) {
  ok((await pixels(page, id)).colors[colour] > 300, `${id} is drawn`);
  ok(await page.locator(`#${id}`).getAttribute('aria-label'), `${id} is described for screen readers`);
}
same(await page.locator('#verdict').textContent(), '4 findings, the worst first', 'the verdict');
const findings = await page.locator('#findings > ul > li').allTextContents();
ok(
  findings[0].startsWith('CRITICAL cxi5 waited for responses that never came'),
  `the worst first: ${findings[0]}`
);
ok(
  findings.some((f) => f.startsWith(`WARNING ${HOSTILE} had all its work wait for memory`)),
  'the host is named as it is called'
);
ok(
  findings.some((f) =>
    f.includes(
      'hni_tx_paused_1 rose by 3,000,000,000 cycles in 10.0 s (300,000,000 a second, 30.0 % of the time). The fabric'
    )
  ),
  'with figures and advice'
);
same(await page.locator('#top-of option:checked').textContent(), 'cxi5', 'its counters are shown first');
same(
  await page.locator('#top tbody tr td').first().textContent(),
  'pct_spt_timeouts',
  'and the proof before all others'
);
same(
  await page.locator('#top tbody tr').first().locator('td').nth(7).textContent(),
  'answers that never came: loss, or a link that flapped',
  'with what it counts'
);

// ---- names are text, and nothing gets in or out
// --------------------------------------------------------------------
same(
  await page.evaluate(() => [
    document.images.length,
    document.scripts.length,
    document.body.innerHTML.includes('<img'),
  ]),
  [0, 2, false],
  'no element made of a name'
);
const policy = await page.locator('meta[http-equiv="Content-Security-Policy"]').getAttribute('content');
ok(
  /^default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+'; /.test(policy) &&
    !/unsafe|https?:|\*/.test(policy),
  `strict policy: ${policy}`
);

// ---- any number of NICs
// ----------------------------------------------------------------------------------------------
same(
  await page.locator('#entities .rows').textContent(),
  '29 rows, page 1 of 2',
  'every NIC, GPU and the host'
);
await page.selectOption('#top-of', { label: HOSTILE });
const [download] = await Promise.all([page.waitForEvent('download'), page.locator('#top .csv').click()]);
const csv = parseCsv(readFileSync(await download.path(), 'utf8'));
same(
  [csv.length, csv.some((r) => r[0] === "'=cmd|' /C calc'!A0"), csv.some((r) => r[0] === HOSTILE)],
  [4, true, true],
  'CSV without what spreadsheets would run'
);
const changed = async (id, act) => {
  const shot = () => page.evaluate((i) => document.querySelector(`#${i} canvas`).toDataURL(), id);
  const before = await shot();
  await act();
  return before !== (await shot());
};
ok(
  await changed('c-heat', () => page.selectOption('#heat-what', { label: 'cxi: CxiErrStats' })),
  'another group side by side'
);
ok(await changed('c-rates', () => page.selectOption('#rates-of', HOSTILE)), 'another counter over time');
await page.selectOption('#group', { label: 'CxiCongestion' });
await page.selectOption('#figures', 'share');
const head = (await page.locator('#group-table th').allTextContents()).map((t) => t.trim());
same([head.length, head[2], head[25]], [27, 'cxi0', 'cxi23'], 'a column each NIC');
const row = page.locator('#group-table tbody tr', { hasText: 'hni_tx_paused_1' });
same(
  [await row.locator('td').nth(5).textContent(), await row.locator('td').nth(6).textContent()],
  ['30 %', '< 0.1 %'],
  'share of the time'
);
same(page.complaints, [], 'nothing complains, nothing leaves');
await page.context().close();

// ---- on a phone, in the dark
// -----------------------------------------------------------------------------------------
page = await open({ viewport: { width: 400, height: 800 }, colorScheme: 'dark' });
ok(
  await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
  'a phone scrolls down only'
);
same(await page.evaluate(() => document.documentElement.dataset.theme), 'dark', 'dark as the system wishes');
same(page.complaints, [], 'nothing complains on a phone');
await browser.close();
finish();
