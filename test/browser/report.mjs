// node report.mjs FOLDER FOLDER_OF_2048_RANKS FOLDER_WITHOUT_RECORDS: report.html in a real browser, as a
// user would use it.
import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { launch, watched, showAll, pixels, parseCsv, ok, same, finish, CHARTS } from './check.mjs';

const [folder, big, nothing] = process.argv.slice(2).map((f) => resolve(f));
const file = join(folder, 'report.html');
const browser = await launch();
const data = JSON.parse(
  readFileSync(file, 'utf8').split('<script type="application/json" id="data">')[1].split('</script>')[0]
);
const column = (table, name) => table.rows.map((r) => r[table.cols.indexOf(name)]);

// ---- everything is drawn, nothing complains, nothing leaves
// -----------------------------------------------------------
let page = await watched(browser);
await page.goto(`file://${file}`);
await showAll(page);
for (const id of CHARTS) {
  const p = await pixels(page, id);
  ok(p.distinct > 8, `${id} is drawn (${p.distinct} colours)`);
  ok(await page.locator(`#${id}`).getAttribute('aria-label'), `${id} is described for screen readers`);
}
ok((await pixels(page, 'c-time')).colors['#0072b2'] > 500, 'transfer bars in their colour');
ok((await pixels(page, 'c-size')).colors['#d55e00'] > 200, 'a line for one node');
same(
  await page.locator('section h2').allTextContents(),
  [
    'What stands out',
    'Where the time went',
    'Completeness and losses',
    'Bandwidth against size',
    'Ranks over time',
    'Outliers',
    'One operation and size',
    'Tables',
    'Method and formulas',
  ],
  'order of the page'
);
same(await page.locator('#nav a').count(), 9, 'a link to every section');
same(await page.locator('#job b').textContent(), data.head, 'the first line is that of the terminal');
ok(
  data.head.endsWith(', INCOMPLETE') && (await page.locator('#job a').getAttribute('href')) === '#s-complete',
  'with the verdict, and the way to what is missing'
);
ok((await page.locator('#verdict').textContent()).startsWith('INCOMPLETE'), 'the verdict');
same(await page.locator('#verdict li').allTextContents(), data.input.trouble, 'with its causes');

ok(
  (await page.locator('#findings li').first().textContent()).startsWith('rank 11 on </script>'),
  'the late rank is named in words'
);
same(await page.locator('#findings li').count(), 1, 'and nobody else');

// The late rank is the row that is orange from half of the run on; planted at rank 11.
const heat = await page.evaluate(() => {
  const area = document.getElementById('c-heat');
  const canvas = area.querySelector('canvas'),
    ratio = canvas.width / area.clientWidth;
  const context = canvas.getContext('2d');
  const { data: d, width, height } = context.getImageData(0, 0, canvas.width, canvas.height);
  const orange = [];
  for (let y = 0; y < height * 0.84; y++) {
    let n = 0;
    for (let x = 0; x < width; x++) {
      const p = (y * width + x) * 4;
      if (d[p] > 170 && d[p + 1] < 120 && d[p + 2] < 70 && d[p + 3] === 255) n++;
    }
    orange.push(n);
  }
  return orange
    .map((n, y) => [y / ratio, n / ratio])
    .filter(([, n]) => n > 100)
    .map(([y]) => y);
});
ok(
  heat.length > 5 && heat[heat.length - 1] - heat[0] < 40,
  `one row stands out (${heat.length} lines of pixels)`
);
await page.hover('#c-heat', { position: { x: 900, y: heat[Math.floor(heat.length / 2)] || 1 } });
ok(
  /rank 11, .*arrived late/.test(await page.locator('.tip').textContent()),
  `it is the late rank: ${await page.locator('.tip').textContent()}`
);

// ---- hostile names are text
// --------------------------------------------------------------------------------------------
same(
  await page.evaluate(() => [
    document.images.length,
    document.scripts.length,
    document.querySelectorAll('iframe, object, embed, b > b').length,
  ]),
  [0, 2, 0],
  'no element made of a name'
);
ok(
  (await page.locator('#outliers').textContent()).includes('</script><img src=x onerror=alert(1)>'),
  "the host's name is shown as it is"
);
same(await page.evaluate(() => document.body.innerHTML.includes('<img')), false, 'no image in the markup');

// ---- policy
// ------------------------------------------------------------------------------------------------------------
const policy = await page.locator('meta[http-equiv="Content-Security-Policy"]').getAttribute('content');
ok(
  /^default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+'; /.test(policy),
  `strict policy: ${policy}`
);
ok(!/unsafe|https?:|\*/.test(policy), 'no way around it');
{
  const probe = await watched(browser);
  await probe.goto(`file://${file}`);
  const got = await probe.evaluate(async () => {
    const violations = [];
    addEventListener('securitypolicyviolation', (e) => violations.push(e.effectiveDirective));
    const s = document.createElement('script');
    s.textContent = 'window.injected = 1';
    document.body.append(s);
    const i = document.createElement('img');
    i.src = 'https://example.invalid/x.png';
    document.body.append(i);
    try {
      await fetch('https://example.invalid/');
    } catch {
      /* as it should */
    }
    await new Promise((r) => setTimeout(r, 100));
    return { injected: window.injected || 0, violations: [...new Set(violations)].sort() };
  });
  same(
    got,
    { injected: 0, violations: ['connect-src', 'img-src', 'script-src-elem'] },
    'the browser enforces it'
  );
  await probe.context().close();
}

// ---- tables: filters, sorting, pages, CSV
// -------------------------------------------------------------------------------
same(
  await page
    .locator('[role=tab]')
    .allTextContents()
    .then((all) => all.slice(0, 7)),
  [
    'Groups',
    'Communicators',
    'Lateness of ranks',
    'Lateness of hosts',
    'Sizes by communicator',
    'Sizes by rank',
    'Sizes by host',
  ],
  'names of tabs that say what they show'
);
const rowsOf = () => page.locator('#table tbody tr').count();
const captionOf = () => page.locator('#table caption').textContent();
const bodyOf = (n) => page.locator(`#table tbody td:nth-child(${n})`).allTextContents();
const groups = data.groups.rows.length;
same(await captionOf(), `Groups: ${groups} of ${groups}`, 'all groups');
await page.selectOption('#filter-func', 'Send');
same([await rowsOf(), (await bodyOf(1))[0]], [1, 'Send'], 'filter by function');
await page.selectOption('#filter-func', '');
await page.selectOption('#filter-type', 'one node');
const nv = column(data.groups, 'type').filter((t) => data.types[t] === 'one node').length;
same(await captionOf(), `Groups: ${nv} of ${groups}`, 'filter by type');
await page.fill('#filter-text', '1.07 allreduce');
same([await rowsOf(), await bodyOf(2)], [1, ['1.07 GB']], 'filter by words, all of them');
await page.fill('#filter-text', 'no such thing');
same(await rowsOf(), 0, 'nothing matches');
await page.fill('#filter-text', '');
await page.selectOption('#filter-type', '');

async function csv() {
  const [download] = await Promise.all([page.waitForEvent('download'), page.locator('#table .csv').click()]);
  return { name: download.suggestedFilename(), rows: parseCsv(readFileSync(await download.path(), 'utf8')) };
}
let got = await csv();
same([got.name, got.rows.length], ['groups.csv', groups + 1], 'CSV of all groups, whatever the page shows');
const head = got.rows[0];
const share = got.rows.slice(1).map((r) => Number(r[head.indexOf('share')]));
same(
  share,
  [...column(data.groups, 'share')].sort((a, b) => b - a),
  'share of time, as sorted, unrounded'
);
const p99 = new Map(
  data.groups.rows.map((r) => [r[data.groups.cols.indexOf('share')], r[data.groups.cols.indexOf('us')][9]])
);
ok(
  got.rows
    .slice(1)
    .every((r) => Number(r[head.indexOf('us_p99')]) === p99.get(Number(r[head.indexOf('share')]))),
  'p99 beside its group'
);
await page.selectOption('#filter-func', 'AllGather');
same((await csv()).rows.length, 2, 'CSV of what the filter leaves');
await page.selectOption('#filter-func', '');

await page.click('#table th:has-text("Size") button');
same(
  await page.locator('#table th:has-text("Size")').getAttribute('aria-sort'),
  'descending',
  'sorted by size'
);
same((await bodyOf(2))[0], '1.07 GB', 'largest first');
await page.click('#table th:has-text("Size") button');
same((await bodyOf(2))[0], '8 B', 'then smallest first');
await page.click('#table button:has-text("Next")');
ok((await page.locator('#table .rows').textContent()).includes('page 2 of 2'), 'second page');

await page.click('#tab-3');
got = await csv();
same(
  got.rows
    .slice(1)
    .map((r) => r[0])
    .sort(),
  column(data.hosts, 'name').sort(),
  'names with quotes and commas survive the CSV'
);
await page.click('#tab-2');
same((await bodyOf(3))[0], '11', 'the rank that cost its peers most comes first');

// ---- controls of the figures
// ------------------------------------------------------------------------------------------
const before = await page.evaluate(() => document.querySelector('#c-size canvas').toDataURL());
await page.selectOption('#size-func', 'AllGather');
ok(
  before !== (await page.evaluate(() => document.querySelector('#c-size canvas').toDataURL())),
  'another function, another picture'
);
await page.selectOption('#group', { index: 3 });
ok((await page.locator('#group-figures').textContent()).includes('operations'), 'figures of the group');
await page.selectOption('#heat-order', 'early');
await page.selectOption('#heat-host', '0');
ok((await pixels(page, 'c-heat')).distinct > 8, 'heat map of one host');
await page.selectOption('#heat-host', '');
await page.hover('#c-heat', { position: { x: 600, y: 60 } });
ok(
  /rank \d+, \+.*peers/.test(await page.locator('.tip').textContent()),
  'the cell under the pointer is told'
);

// ---- what is lost, and what is not
// -----------------------------------------------------------------------------------------
for (const text of ['clocks disagree', 'filters asked for', 'without a bandwidth', "plugin's settings"]) {
  ok(!(await page.locator('#losses').textContent()).includes(text), `no loss: ${text}`);
}
ok(
  !(await page.locator('#s-complete').textContent()).includes('No place to name'),
  'places are where they belong'
);
ok(!/\de-\d+ GB\/s/.test(await page.locator('main').textContent()), 'no exponents');

// ---- the command to copy is safe for a shell
// ---------------------------------------------------------------------------
await page.locator('#outliers .copy').first().click();
ok(
  await page
    .waitForFunction(
      () => document.getElementById('live').textContent.startsWith('Copied: nccl-inspector summary'),
      null,
      { timeout: 5000 }
    )
    .then(
      () => true,
      () => false
    ),
  'copied, and said so'
);
for (const command of await page
  .locator('#outliers .copy')
  .evaluateAll((l) => l.map((b) => b.dataset.command))) {
  const words = execFileSync('bash', ['-c', `${command.replace(/^nccl-inspector/, "printf '%s\\n'")}`], {
    encoding: 'utf8',
  })
    .trimEnd()
    .split('\n');
  same(words.slice(0, 4), ['summary', '--input_dir', data.input_paths[0], '--comm'], 'words as meant');
  ok(
    words.includes('--sn') || words.includes('Send') || words.includes('Recv'),
    `the operation by its number: ${command}`
  );
}

// ---- keyboard
// ----------------------------------------------------------------------------------------------------------
await page.goto(`file://${file}`);
await page.keyboard.press('Tab');
same(
  await page.evaluate(() => document.activeElement.textContent),
  'Skip to the figures',
  'the skip link comes first'
);
await page.keyboard.press('Enter');
same(await page.evaluate(() => document.activeElement.id), 'main', 'and skips');
await page.focus('#tab-0');
await page.keyboard.press('ArrowRight');
same(
  await page.evaluate(() => [
    document.activeElement.id,
    document.activeElement.getAttribute('aria-selected'),
  ]),
  ['tab-1', 'true'],
  'arrows move between tables'
);
await page.keyboard.press('ArrowLeft');
await page.keyboard.press('ArrowLeft');
same(await page.evaluate(() => document.activeElement.id), 'tab-6', 'around the end');
await showAll(page);
await page.focus('#c-heat');
await page.keyboard.press('ArrowDown');
for (let i = 0; i < 11; i++) await page.keyboard.press('ArrowDown');
for (let i = 0; i < 150; i++) await page.keyboard.press('ArrowRight');
ok(
  /rank 11, .*arrived late/.test(await page.locator('#live').textContent()),
  `the heat map reads out its cells: ${await page.locator('#live').textContent()}`
);
const unnamed = await page.evaluate(
  () =>
    [...document.querySelectorAll('button, select, input, a')].filter(
      (e) => !(e.getAttribute('aria-label') || e.textContent.trim() || (e.labels && e.labels.length))
    ).length
);
same(unnamed, 0, 'every control has a name');

// ---- dark, narrow, print
// ------------------------------------------------------------------------------------------------
const background = (p) => p.evaluate(() => getComputedStyle(document.body).backgroundColor);
const light = [await background(page), (await pixels(page, 'c-time')).colors];
await page.click('#theme');
await showAll(page);
same(await page.evaluate(() => document.documentElement.dataset.theme), 'dark', 'the switch');
ok((await background(page)) !== light[0], 'dark page');
const darkBars = (await pixels(page, 'c-time')).colors;
ok(darkBars['#56b4e9'] > 500 && !(light[1]['#56b4e9'] > 500), 'dark palette in the charts');
same(page.complaints, [], 'nothing complained');

const dark = await watched(browser, { colorScheme: 'dark' });
await dark.goto(`file://${file}`);
same(await dark.evaluate(() => document.documentElement.dataset.theme), 'dark', "the system's wish");
// Contrast of text and ground, WCAG AA.
for (const p of [page, dark]) {
  for (const theme of ['light', 'dark']) {
    await p.evaluate((t) => {
      document.documentElement.dataset.theme = t;
    }, theme);
    const low = await p.evaluate(() => {
      const lum = (c) => {
        const [r, g, b] = c.match(/[\d.]+/g).map((v) => {
          const s = v / 255;
          return s <= 0.03928 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const ground = (e) => {
        for (; e; e = e.parentElement) {
          const c = getComputedStyle(e).backgroundColor;
          if (c !== 'rgba(0, 0, 0, 0)') return c;
        }
        return 'rgb(255, 255, 255)';
      };
      return [...document.querySelectorAll('h1, h2, h3, p, li, td, th, button, label, span, b, dt, dd, a')]
        .filter((e) => e.textContent.trim() && e.offsetParent && !e.disabled)
        .map((e) => {
          const [a, b] = [lum(getComputedStyle(e).color), lum(ground(e))].sort((x, y) => y - x);
          return [(a + 0.05) / (b + 0.05), e.tagName, e.className, e.textContent.slice(0, 20)];
        })
        .filter(([c]) => c < 4.5)
        .slice(0, 3);
    });
    same(low, [], `contrast in ${theme}`);
  }
}
await dark.emulateMedia({ media: 'print', colorScheme: 'dark' });
await dark.evaluate(() => dispatchEvent(new Event('beforeprint')));
for (const id of CHARTS)
  same(await dark.locator(`#${id}`).getAttribute('data-drawn'), '1', `${id} is drawn for print, seen or not`);
// Each canvas was drawn for the paper's width (720 of the main column) and is as wide as its place: nothing
// is cut off.
for (const id of CHARTS) {
  const { drawn, wanted, shown, room } = await dark
    .locator(`#${id} canvas`)
    .first()
    .evaluate((c) => {
      const place = c.closest('.chart').parentElement.clientWidth;
      return {
        drawn: c.width / devicePixelRatio,
        wanted: (place * 720) / document.querySelector('main').clientWidth,
        shown: c.getBoundingClientRect().width,
        room: c.closest('.chart').clientWidth,
      };
    });
  ok(
    Math.abs(drawn - wanted) < 2 && Math.abs(shown - room) < 2,
    `${id} fits the paper (${drawn} of ${wanted}, ${shown} of ${room})`
  );
}
same(await background(dark), 'rgb(255, 255, 255)', 'paper is white');
same(await dark.locator('nav').isVisible(), false, 'no navigation on paper');
same(dark.complaints, [], 'nothing complained in the dark');

const narrow = await watched(browser, { viewport: { width: 390, height: 800 } });
await narrow.goto(`file://${file}`);
await showAll(narrow);
const wide = await narrow.evaluate(() => document.scrollingElement.scrollWidth);
ok(wide <= 390, `no sideways scrolling on a phone (${wide} px)`);
same(narrow.complaints, [], 'nothing complained on a phone');

// ---- logs without a record
// ------------------------------------------------------------------------------------------------
const none = await watched(browser);
await none.goto(`file://${join(nothing, 'report.html')}`);
await showAll(none);
same(await none.locator('.badtext').count(), 0, 'no part fails for want of data');
same((await none.locator('main .none').count()) >= 8, true, 'each says that there is nothing');
same(none.complaints, [], 'nothing complained without a record');

// ---- 2,048 ranks
// --------------------------------------------------------------------------------------------------------
{
  const bigFile = join(big, 'report.html');
  const size = statSync(bigFile).size;
  ok(size <= 3e6, `size ${size}`);
  const paints = [];
  for (let i = 0; i < 3; i++) {
    const p = await watched(browser);
    await p.goto(`file://${bigFile}`);
    await p.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length > 0);
    paints.push(await p.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime));
    if (i === 0) {
      const start = Date.now();
      await showAll(p);
      console.log(`2,048 ranks: all charts drawn ${Date.now() - start} ms after scrolling through`);
      ok((await pixels(p, 'c-heat')).distinct > 8, 'heat map of 2,048 ranks');
    }
    same(p.complaints, [], 'nothing complained');
    await p.context().close();
  }
  console.log(
    `2,048 ranks: ${size} bytes, first contentful paint ${paints.map((t) => t.toFixed(0)).join(', ')} ms`
  );
  ok(Math.min(...paints) < 1000, `first paint under 1 s: ${paints}`);
}
await browser.close();
finish();
