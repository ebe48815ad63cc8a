// node head.mjs TOKEN PICTURES URL: the page of a head in a real browser. TOKEN "": none; PICTURES: a folder
// for them, or "". Against test/lib/head_mock.py all is looked at; of a real head what test/lib/head_page.py
// plants: what this prints as `@word`, that does, and answers with a line.
import { createInterface } from 'node:readline';
import { launch, watched, pixels, ok, same, finish } from './check.mjs';

const [token, pictures, base] = process.argv.slice(2);
const mock = async (body) =>
  (await fetch(`${base}/mock`, body && { method: 'POST', body: JSON.stringify(body) })).json();
const made = await fetch(`${base}/mock`).then(
  (r) => r.ok,
  () => false
);
const HOSTILE = '</script><img src=x onerror=alert(1)>';
const browser = await launch();
const answers = made ? null : createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const control = async (word) => {
  console.log(`@${word}`);
  return (await answers.next()).value;
};
const complaints = (page) =>
  page.complaints.filter((c) => !c.startsWith(`request: ${base}/`) && !/Failed to load resource/.test(c));
const text = (page, id) => page.locator(id).textContent();
const until = (page, id, part) =>
  page
    .waitForFunction(([i, p]) => (document.querySelector(i)?.textContent || '').includes(p), [id, part], {
      timeout: 30000,
    })
    .then(
      () => true,
      async () => {
        console.log(`waited for "${part}", there is "${await text(page, id)}"`);
        return false;
      }
    );
// What `get` gives, once it is `want`; on a busy machine nodes of the test are stale for a moment.
async function becomes(page, get, want, what) {
  let got = await get();
  for (let i = 0; i < 150 && JSON.stringify(got) !== JSON.stringify(want); i++) {
    await page.waitForTimeout(200);
    got = await get();
  }
  same(got, want, what);
}
async function open(options) {
  const page = await watched(browser, options);
  await page.goto(`${base}/page`);
  if (token) {
    await page.fill('#token', token);
    await page.keyboard.press('Enter');
  }
  await page.waitForFunction(() => /frame of/.test(document.getElementById('job').textContent), null, {
    timeout: 30000,
  });
  return page;
}
async function picture(page, name) {
  if (!pictures) return;
  for (const id of ['c-util', 'c-busbw', 'c-heat']) {
    // charts are drawn when they are first seen
    await page.locator(`#${id}`).scrollIntoViewIfNeeded();
    await page.waitForTimeout(1500);
  }
  await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path: `${pictures}/${name}.png`, fullPage: true });
  await page.screenshot({
    path: `${pictures}/${name}-top.png`,
    fullPage: true,
    clip: { x: 0, y: 0, width: page.viewportSize().width, height: 1420 },
  });
}

// ---- the token
// ------------------------------------------------------------------------------------------------------
if (token) {
  const page = await watched(browser);
  await page.goto(`${base}/page`);
  await page.waitForFunction(() => document.activeElement.id === 'token');
  await page.keyboard.type('wrong');
  await page.keyboard.press('Enter');
  ok(await until(page, '#login-said', 'refused'), 'a wrong token is refused');
  same(
    [
      await page.locator('#cards .card b').first().textContent(),
      (await text(page, '#verdict')).startsWith('No connection since 20'),
    ],
    ['0', true],
    'nothing is shown before'
  );
  await page.keyboard.type(token);
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.getElementById('login').hidden);
  await page.reload();
  ok(
    await page
      .waitForFunction(() => /frame of/.test(document.getElementById('job').textContent), null, {
        timeout: 30000,
      })
      .then(
        () => true,
        () => false
      ),
    'a tab keeps it'
  );
  same(await page.locator('#login').isVisible(), false, 'and is not asked again');
  same(complaints(page), [], 'nothing complains about the token');
  await page.context().close();
}

// ---- what any head shows
// ----------------------------------------------------------------------------------------------
let page = await open();
same(
  await page.locator('section h2').allTextContents(),
  ['State', 'Sessions', 'The last five minutes', 'Collectives in flight', 'Nodes', 'GPUs', 'NICs'],
  'order of the page'
);
const policy = await page.locator('meta[http-equiv="Content-Security-Policy"]').getAttribute('content');
ok(
  /^default-src 'none'; /.test(policy) &&
    /connect-src 'self'$/.test(policy) &&
    !/unsafe|https?:|\*/.test(policy),
  `strict policy: ${policy}`
);
await page.focus('.skip');
const order = [];
for (let i = 0; i < 30; i++) {
  order.push(
    await page.evaluate(() => document.activeElement.id || document.activeElement.closest('[id]').id)
  );
  await page.keyboard.press('Tab');
}
const wanted = ['theme', 'print', 'nav', 'pause', 'name', 'start', 'stop-all', 'sessions', 'c-heat'].filter(
  (id) => order.includes(id)
);
ok(
  ['theme', 'pause', 'name', 'sessions'].every((id) => wanted.includes(id)) &&
    wanted.every((id, i) => !i || order.indexOf(id) > order.indexOf(wanted[i - 1])),
  `keys go from top to bottom: ${order}`
);

const name = `warm-up ${process.pid}`;
await page.fill('#name', '.hidden');
await page.keyboard.press('Enter');
same(
  [
    await page.getAttribute('#name', 'aria-invalid'),
    (await text(page, '#session-said')).startsWith('A name has letters'),
  ],
  ['true', true],
  'a name that cannot be'
);
await page.fill('#name', name);
await page.keyboard.press('Enter');
ok(await until(page, '#session-said', `It goes to ${name}.json`), 'started');
ok(
  (await until(page, '#sessions tbody tr:first-child', name)) &&
    (await until(page, '#sessions tbody', 'runs')),
  'and listed'
);
await page.fill('#name', name);
await page.click('#start button:text-is("Start")');
ok(await until(page, '#session-said', 'runs'), 'the head says what is wrong');
same(await page.getAttribute('#session-said', 'class'), 'badtext', 'as an error');
await page.click(`[aria-label="Stop ${name}"]`);
ok(
  (await until(page, '#session-said', 'stopped')) &&
    (await page
      .locator(`[aria-label="Resume ${name}"]`)
      .waitFor()
      .then(
        () => true,
        () => false
      )),
  'stopped'
);
same(
  await page.evaluate(() => !!document.activeElement.closest('#sessions')),
  true,
  'the keyboard is not lost with the button'
);
const focused = () => page.evaluate(() => document.activeElement.getAttribute('aria-label'));
// a row that is replaced at that moment
for (let i = 0; i < 20 && (await focused()) !== `Resume ${name}`; i++)
  await page.focus(`[aria-label="Resume ${name}"]`);
await page.waitForTimeout(1500);
same(await focused(), `Resume ${name}`, 'nor with new rows');
if (made) {
  // a sample comes late, and the file is made once more; there is an older session of that name
  const place = () =>
    page.evaluate(() => [
      document.activeElement.getAttribute('aria-label'),
      document.activeElement.closest('tr')?.rowIndex,
    ]);
  const here = await place();
  await mock({ finishing: name, twin: name, changes: 100 });
  ok(
    (await until(page, '#sessions tbody', 'is being written')) &&
      (await until(page, '#sessions .rows', '5 rows')),
    'a file is made once more'
  );
  same(await place(), here, 'nor where a session is being written, nor to another one of that name');
  await mock({ finishing: null, twin: null, changes: 101 });
  ok(await until(page, '#sessions .rows', '4 rows'), 'it is whole again');
  same(await place(), here, 'nor when it is');
}
await page.click(`[aria-label="Resume ${name}"]`);
await page.locator(`[aria-label="Stop ${name}"]`).waitFor();
const asked = [];
page.answer = (dialog) => {
  asked.push(dialog.message());
  return asked.length === 1 ? dialog.dismiss() : dialog.accept();
};
await page.click('#stop-all');
await page.waitForTimeout(500);
same(
  [await page.locator(`[aria-label="Stop ${name}"]`).count(), asked.length === 1 && asked[0].includes(name)],
  [1, true],
  `Stop all asks first: ${asked}`
);
await page.click('#stop-all');
page.answer = null;
await page.locator(`[aria-label="Resume ${name}"]`).waitFor();
same(complaints(page), [], 'nothing complains');

if (made) {
  same(
    await mock(),
    [
      ['/profiling/start', { name }, 'application/json'],
      ['/profiling/start', { name }, 'application/json'],
      ['/profiling/stop', { name }, 'application/json'],
      ['/profiling/resume', { name: `id-${name}` }, 'application/json'],
      ['/profiling/stop', { name: null }, 'application/json'],
    ],
    'what was asked of the head'
  );

  // ---- nodes, GPUs, NICs, jobs
  // ------------------------------------------------------------------------------------------
  const row = async (id, has) =>
    (await page.locator(`#${id} tbody tr`, { hasText: has }).first().locator('td').allTextContents()).map(
      (x) => x.replace(/ /g, ' ')
    );
  same(
    await page
      .locator('#cards .card')
      .allTextContents()
      .then((l) => l.filter((c) => /send|stale|gone|GPUs|frames/.test(c))),
    ['4of 5 nodes send', '0stale', '1gone', '40GPUs', '500 msbetween frames'],
    'the head in figures'
  );
  same(
    await row('nodes', 'n4'),
    ['n4', 'gone', '6.67 min', '−8.00 ms', '8', '–', '–', '–', '3', '4', 'agent'],
    'what is gone comes first, with what it cost'
  );
  same((await row('nodes', HOSTILE)).slice(0, 2), [HOSTILE, 'ok'], 'a name is text');
  same(
    (await row('nodes', 'n3')).slice(4),
    ['8', '8.5 %', '40 %', '10 %', '0', '3', 'gsprof'],
    'a client of gsprof'
  );
  same(await page.locator('#gpus .rows').textContent(), '40 rows, page 1 of 2', 'every GPU');
  same(
    (await row('gpus', 'n0')).slice(4),
    ['72 %', '1.50', '0.500', '110', '112', '500', '50', 'NVIDIA H100 80GB HBM3'],
    'figures of a GPU'
  );
  same(
    (await row('nics', 'mlx5_3')).slice(1),
    ['mlx5_3', 'ok', '20.0', '24.0', '48 %', '3.0 %'],
    'figures of a NIC'
  );
  const job = await row('jobs', 'train');
  same(
    [job[3], job[4], job[5], job[8]],
    ['running', '3', '24', '180'],
    'a job over its nodes, with the bus bandwidth of what finished'
  );
  ok(
    job[6].replace(/\D/g, '') > 2800 && job[6].replace(/\D/g, '') < 3200 && job[7] > 11.5 && job[7] < 12.5,
    `its rates are sums of what the head says of its nodes: ${job}`
  );
  same(
    (await row('open', 'AllReduce')).slice(1),
    ['AllReduce', '5', '0xabc', '24', 'n3', HOSTILE, 'stuck'],
    'the oldest operation'
  );
  const verdict = await text(page, '#verdict');
  ok(
    verdict.includes(`${HOSTILE}: rank 27 never came to <b>AllReduce</b> 5`) &&
      verdict.includes('Degraded: frames wait') &&
      verdict.includes('1 node is gone'),
    `what to look at: ${verdict}`
  );
  same(
    await page.evaluate(() => [
      document.images.length,
      document.scripts.length,
      document.querySelectorAll('b > *, td img, li b').length,
    ]),
    [0, 2, 0],
    'no element made of a text of the head'
  );
  await page.locator('#c-util').scrollIntoViewIfNeeded();
  await page.waitForFunction(() => document.getElementById('c-util').dataset.drawn === '1');
  ok(
    (await pixels(page, 'c-util')).colors['#0072b2'] > 300,
    'charts begin with what the head has of the last five minutes'
  );
  for (const [id, colour] of [
    ['c-util', '#0072b2'],
    ['c-moved', '#0072b2'],
    ['c-busbw', '#0072b2'],
    ['c-oldest', '#0072b2'],
    ['c-heat', '#c3c8d1'],
  ]) {
    await page.locator(`#${id}`).scrollIntoViewIfNeeded();
    await page.waitForFunction((i) => document.getElementById(i).dataset.drawn === '1', id);
    let drawn = 0; // a line grows with time
    for (let i = 0; i < 60 && drawn <= 10; i++) {
      drawn = (await pixels(page, id)).colors[colour] || 0;
      await page.waitForTimeout(200);
    }
    ok(drawn > 10, `${id} is drawn`);
  }
  await page.focus('#c-heat');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowDown');
  ok(
    /GPU 1: \d+(\.\d+)? % utilization$/.test(await text(page, '#live')),
    `the heat map is read out: ${await text(page, '#live')}`
  );
  await page.fill('#filter', 'n3');
  ok(
    (await until(page, '#nodes .rows', '1 row')) &&
      (await until(page, '#gpus .rows', '8 rows')) &&
      (await until(page, '#nics .rows', '4 rows')),
    'one node alone'
  );
  await page.fill('#filter', '');

  // ---- stale, lost, back
  // -----------------------------------------------------------------------------------------------
  await mock({ stale: true });
  ok(await until(page, '#verdict', '1 node is stale'), 'a node that is stale is told');
  same((await row('gpus', 'n1')).slice(2, 5), ['stale', '–', '–'], 'and its numbers are not shown');
  same((await page.locator('#gpus tr.old').count()) > 0, true, 'its lines are grey');
  await mock({ lost: true });
  ok(await until(page, '#verdict', 'Connection lost since 20'), 'a lost connection is told');
  same(
    [
      await page.getAttribute('#main', 'class'),
      await page.locator('#cards').evaluate((e) => getComputedStyle(e).opacity),
    ],
    ['old', '0.5'],
    'old numbers look old'
  );
  await page.locator('#c-util').scrollIntoViewIfNeeded();
  await picture(page, 'lost');
  await mock({ lost: false, stale: false });
  ok(
    await page
      .waitForFunction(
        () =>
          document.getElementById('main').className === '' &&
          !/lost/.test(document.getElementById('verdict').textContent),
        null,
        { timeout: 40000 }
      )
      .then(
        () => true,
        () => false
      ),
    'it comes back by itself'
  );
  await page.click('#pause');
  const before = await text(page, '#job');
  await page.waitForTimeout(1500);
  same(
    [await text(page, '#job'), await page.getAttribute('#pause', 'aria-pressed')],
    [before, 'true'],
    'Pause holds what is shown'
  );
  await page.click('#pause');
  same(complaints(page), [], 'nothing complains in the end');
}
if (!made) {
  // ---- a real head
  // -----------------------------------------------------------------------------------------------------
  const row = async (id, has) =>
    (await page.locator(`#${id} tbody tr`, { hasText: has }).first().locator('td').allTextContents()).map(
      (x) => x.replace(/\u00a0/g, ' ')
    );
  ok(await until(page, '#cards', '5of 5 nodes send'), 'agents, and a client of gsprof');
  const figures = async () =>
    /0stale0gone34GPUs.*500 msbetween frames/.test(
      (await page.locator('#cards').textContent()).replace(/\s/g, ' ')
    );
  await becomes(page, figures, true, 'cards');
  await becomes(
    page,
    async () => [
      (await row('nodes', 'n1')).slice(4, 9),
      (await row('nodes', 'n1'))[10],
      (await row('nodes', 'g1'))[10],
    ],
    [['8', '13 %', '50 %', '25 %', '0'], 'agent', 'gsprof'],
    'a node'
  );
  await becomes(
    page,
    async () => (await row('gpus', 'n2')).slice(3),
    ['50 %', '63 %', '1.50', '0.500', '110', '112', '500', '55', 'NVIDIA H100 80GB HBM3'],
    'figures of a GPU'
  );
  await becomes(
    page,
    () => row('nics', 'mlx5_1'),
    ['n1', 'mlx5_1', 'ok', '20.0', '25.0', '50 %', '1.0 %'],
    'figures of a NIC'
  );
  ok(await until(page, '#jobs tbody', 'train'), 'a job');
  await becomes(
    page,
    async () => {
      const job = await row('jobs', 'train');
      return [job[3], job[4], job[5], job[8], job[9]];
    },
    ['running', '3', '24', '180', '12'],
    'a job over its nodes'
  );
  // What an agent of ours found out about a job of the simulator whose rank 2 never comes.
  ok(
    (await until(page, '#verdict', 'ReduceScatter 0 of communicator world: rank 2')) &&
      (await until(page, '#open tbody', 'stuck')),
    'a hang is told'
  );
  await becomes(
    page,
    async () => {
      const open = await row('open', 'ReduceScatter');
      return [open.slice(1, 4), open.slice(5)];
    },
    [
      ['ReduceScatter', '0', 'world'],
      ['n4', '77', 'stuck'],
    ],
    'and what is in flight'
  );
  await becomes(page, async () => (await row('jobs', '77'))[3], 'stuck', 'in the table of jobs, too');
  const moved = async (id) => {
    await page.locator(`#${id}`).scrollIntoViewIfNeeded();
    await page.waitForFunction((i) => document.getElementById(i).dataset.drawn === '1', id);
    const shot = () => page.evaluate((i) => document.querySelector(`#${i} canvas`).toDataURL(), id),
      first = await shot();
    for (let i = 0; i < 100 && (await shot()) === first; i++) await page.waitForTimeout(100);
    return (await shot()) !== first && ((await pixels(page, id)).colors['#0072b2'] || 0) > 10;
  };
  for (const id of ['c-util', 'c-moved', 'c-busbw', 'c-oldest']) ok(await moved(id), `${id} moves`);
  await page.fill('#name', 'through a kill');
  await page.keyboard.press('Enter');
  const frames = async () => Number((await row('sessions', 'through a kill'))[5]);
  ok(await until(page, '#sessions tbody', 'through a kill'), 'a session more');
  const grows = async (than) => {
    for (let i = 0; i < 150; i++) {
      if ((await frames()) > than) return true;
      await page.waitForTimeout(200);
    }
    return false;
  };
  ok((await grows(0)) && (await grows(await frames())), 'its frames are counted');
  const before = await frames();
  await page.reload();
  await page.waitForFunction(() => /frame of/.test(document.getElementById('job').textContent), null, {
    timeout: 30000,
  });
  await page.locator('#c-util').scrollIntoViewIfNeeded();
  await page.waitForFunction(() => document.getElementById('c-util').dataset.drawn === '1');
  await becomes(
    page,
    async () => (await pixels(page, 'c-util')).colors['#0072b2'] > 10,
    true,
    'a page that is opened anew has the charts of before'
  );
  if (pictures) await page.waitForTimeout(150000); // charts with something in them
  await picture(page, 'light');
  await control('kill');
  ok(await until(page, '#verdict', 'Connection lost since 20'), 'the end of the head is told');
  same(
    [
      await page.getAttribute('#main', 'class'),
      await page.locator('#cards').evaluate((e) => getComputedStyle(e).opacity),
    ],
    ['old', '0.5'],
    'old numbers look old'
  );
  await picture(page, 'lost');
  await control('begin');
  ok(
    await page
      .waitForFunction(() => document.getElementById('main').className === '', null, { timeout: 60000 })
      .then(
        () => true,
        () => false
      ),
    'it comes back by itself'
  );
  ok(await until(page, '#cards', '5of 5 nodes send'), 'with all nodes');
  ok(
    (await row('sessions', 'through a kill'))[2] === 'runs' && (await grows(before)),
    'and the session goes on'
  );
  await page.click('[aria-label="Stop through a kill"]');
  ok(await until(page, '#session-said', 'Data saved to through a kill.json'), 'until it is stopped');
  same(
    complaints(page).filter(
      (c) => !c.includes('ERR_CONNECTION_REFUSED') && !c.includes('ERR_INCOMPLETE_CHUNKED')
    ),
    [],
    'nothing complains in the end'
  );
}
if (made) await picture(page, 'light');
await page.context().close();

// ---- on a phone, in the dark
// -------------------------------------------------------------------------------------------
page = await open({ viewport: { width: 360, height: 740 }, colorScheme: 'dark' });
ok(
  await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
  `a phone scrolls down only (${await page.evaluate(() => document.documentElement.scrollWidth)} px)`
);
same(await page.evaluate(() => document.documentElement.dataset.theme), 'dark', 'dark as the system wishes');
await picture(page, 'phone');
same(complaints(page), [], 'nothing complains on a phone');
await page.setViewportSize({ width: 1280, height: 900 });
await picture(page, 'dark');
await browser.close();
if (!made) process.stdin.destroy();
finish();
