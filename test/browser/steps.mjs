// node steps.mjs FOLDER FOLDER_WITHOUT_STEPS: what stands out with its costs, the run and the steps of
// report.html in a real browser.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { launch, watched, pixels, ok, same, finish } from './check.mjs';

const [folder, without] = process.argv.slice(2).map((f) => resolve(f));
const file = join(folder, 'report.html');
const data = JSON.parse(
  readFileSync(file, 'utf8').split('<script type="application/json" id="data">')[1].split('</script>')[0]
);
const browser = await launch();
async function open(options, path = file) {
  const page = await watched(browser, options);
  await page.goto(`file://${path}`);
  for (const id of ['c-parts', 'c-steps']) {
    if ((await page.locator(`#${id}`).count()) === 0) continue;
    await page.locator(`#${id}`).scrollIntoViewIfNeeded();
    await page.waitForFunction((i) => document.getElementById(i).dataset.drawn === '1', id);
  }
  return page;
}

// ---- what stands out: sentence, cost, steps, evidence, command
// ----------------------------------------------------------
const page = await open();
same(await page.locator('.badtext').count(), 0, 'no part fails');
const cards = page.locator('#findings ol > li');
same(await cards.count(), 3, 'three findings');
ok(
  (await cards.nth(0).textContent()).startsWith('rank 11 on </script><b> takes 12.0 % longer.'),
  'the sentence, as text'
);
same(await page.locator('#findings b, #findings i').count(), 0, 'no element made of a name');
same(
  await cards.nth(0).locator('.row').allTextContents(),
  ['Cost120 ms, 4.0 % (90.0 ms to 150 ms, 3.0 % to 5.0 %)', 'Steps150 to 299 of 300'],
  'cost with its interval, and steps'
);
same((await cards.nth(1).locator('.row').allTextContents())[1], 'Stepsall 300', 'all steps');
same((await cards.nth(2).locator('.row').allTextContents())[1], 'Steps20 to 39 of 300', 'some steps');
ok((await cards.nth(0).textContent()).includes('Evidence: <i>clock</i> 900 MHz'), 'evidence');
same(await cards.nth(1).getByText('Evidence').count(), 0, 'none where there is none');
ok(
  (await page.locator('#findings').textContent()).includes('2 more: see summary/summary.json.'),
  'what is left out is counted'
);
const bars = await cards
  .nth(0)
  .locator('.bar')
  .evaluateAll((l) =>
    l.map((b) =>
      [...b.children].map((r) => [
        r.getAttribute('class'),
        Math.round(r.getAttribute('x')),
        Math.round(r.getAttribute('width')),
        r.getBoundingClientRect().width > 0,
      ])
    )
  );
same(
  bars,
  [
    [
      ['ground', 0, 100, true],
      ['value', 0, 4, true],
      ['range', 3, 2, true],
    ],
    [
      ['ground', 0, 100, true],
      ['value', 50, 50, true],
    ],
  ],
  'a bar is the run'
);
same(await page.locator('#findings .copy').count(), 2, 'a command where there is one');
const command = await cards.nth(0).locator('.copy').getAttribute('data-command');
same(
  execFileSync('bash', ['-c', command.replace(/^nccl-inspector/, "printf '%s\\n'")], { encoding: 'utf8' })
    .trimEnd()
    .split('\n'),
  ['trace', ...data.input_paths, '--rank', '11'],
  'words as meant'
);
await cards.nth(0).locator('.copy').click();
ok(
  await page
    .waitForFunction(
      () => document.getElementById('live').textContent.startsWith('Copied: nccl-inspector trace'),
      null,
      { timeout: 5000 }
    )
    .then(
      () => true,
      () => false
    ),
  'copied'
);

// ---- the run and the steps
// ----------------------------------------------------------------------------------------------
same(
  await page.locator('#run-note').textContent(),
  'The run: 3.00 s = 2.25 s computing, 600 ms transfers, 150 ms pauses on the critical path; without these findings 2.85 s.',
  'what the run consists of'
);
const parts = (await pixels(page, 'c-parts')).colors;
ok(
  parts['#009e73'] > 3 * parts['#0072b2'] &&
    parts['#0072b2'] > 3 * parts['#d55e00'] &&
    parts['#d55e00'] > 100,
  'its parts, to scale'
);
ok(
  (await page.locator('#step-note').textContent()).startsWith(
    '300 steps of 10.2 ms (p10 9.30 ms, p90 10.2 ms), marked by AllReduce on <world> (0x1, 16 ranks). '
  ),
  'how long a step takes'
);
ok(
  (await page.locator('#step-note').textContent()).includes(' is cut off'),
  'that long steps are cut off is said'
);
ok((await pixels(page, 'c-steps')).distinct > 20, 'the chart of the steps is drawn');
// Above all parts it is white where no finding is, and shaded in the second half.
const shade = await page.evaluate(() => {
  const canvas = document.querySelector('#c-steps canvas'),
    ratio = canvas.width / canvas.clientWidth;
  const at = (x) =>
    [
      ...canvas.getContext('2d').getImageData(Math.round(x * canvas.width), Math.round(44 * ratio), 1, 1)
        .data,
    ].join();
  return [at(0.31), at(0.91)];
});
ok(shade[0] !== shade[1], `steps that a finding covers are shaded (${shade})`);
// Who was late when, by the same numbers: 10 % of a step in the second half, and nobody else.
for (const id of ['c-heat', 'c-time']) {
  await page.locator(`#${id}`).scrollIntoViewIfNeeded();
  await page.waitForFunction((i) => document.getElementById(i).dataset.drawn === '1', id);
}
await page.focus('#c-heat');
for (let i = 0; i < 12; i++) await page.keyboard.press('ArrowDown');
ok(
  /rank 11, .*: as long as ranks with the same work$/.test(await page.locator('#live').textContent()),
  `not late at first: ${await page.locator('#live').textContent()}`
);
for (let i = 0; i < 150; i++) await page.keyboard.press('ArrowRight');
ok(
  /rank 11, .*: 10 % of a step longer than ranks with the same work$/.test(
    await page.locator('#live').textContent()
  ),
  `late then: ${await page.locator('#live').textContent()}`
);
ok((await page.locator('#heat-note').textContent()).includes(' Boxes: '), 'a box where the finding says so');
ok(
  /transfers on its critical path, 20 % together; what the findings cost in its operations, 5\.0 % together/.test(
    await page.locator('#time-note').textContent()
  ),
  `communicators are shares of the run: ${await page.locator('#time-note').textContent()}`
);
const before = await page.evaluate(() => document.querySelector('#c-steps canvas').toDataURL());
await page.focus('#c-steps');
for (const key of ['ArrowRight', 'PageDown', 'PageDown', 'ArrowLeft', 'ArrowLeft', 'ArrowLeft'])
  await page.keyboard.press(key);
same(
  await page.locator('#live').textContent(),
  'step 17, +170 ms, computing  7.00 ms, transfers  1.50 ms, waiting  800 µs, hidden  1.20 ms, pauses  30.0 ms',
  'read out by keyboard'
);
await page.waitForTimeout(200);
ok(
  before !== (await page.evaluate(() => document.querySelector('#c-steps canvas').toDataURL())),
  'and shown at the place'
);
same(page.complaints, [], 'nothing complained');

// ---- dark, phone, paper, and pages without steps
// ------------------------------------------------------------------------
const dark = await open({ colorScheme: 'dark' });
ok((await pixels(dark, 'c-parts')).colors['#2fc79a'] > 100, 'dark palette');
same(dark.complaints, [], 'nothing complained in the dark');
const narrow = await open({ viewport: { width: 390, height: 800 } });
const wide = await narrow.evaluate(() => document.scrollingElement.scrollWidth);
ok(wide <= 390, `no sideways scrolling on a phone (${wide} px)`);
await dark.emulateMedia({ media: 'print', colorScheme: 'dark' });
await dark.evaluate(() => dispatchEvent(new Event('beforeprint')));
for (const [id, color] of [
  ['c-parts', '#009e73'],
  ['c-steps', '#e69f00'],
])
  ok((await pixels(dark, id)).colors[color] > 10, `${id} is drawn for paper`);
const none = await open({}, join(without, 'report.html'));
same(
  await none.locator('#run-part, #step-part, #findings ol, #findings .row').count(),
  0,
  'nothing of it where findings are by durations'
);
same(none.complaints, [], 'nothing complained without');
await browser.close();
finish();
