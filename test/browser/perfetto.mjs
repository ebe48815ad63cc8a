// node perfetto.mjs PERFETTO_UI TRACE [EXPECTED.json] [PICTURE.png [NANOSECONDS_FROM NANOSECONDS_TO [SQL of a
// slice's id]]] Opens a timeline in Perfetto's own page with Perfetto's own trace processor, served from a
// folder; asks it for complaints and for what EXPECTED says: {"slices": N, "dur": NS, "arrows": N, "threads":
// [...], "processes": [...]}.
import http from 'node:http';
import fs from 'node:fs';
import path from 'node:path';
import { launch, ok, same, finish } from './check.mjs';

const [dist, trace, expected, picture, from, to, select] = process.argv.slice(2);
const types = {
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.html': 'text/html',
  '.wasm': 'application/wasm',
  '.json': 'application/json',
};
const server = http.createServer((request, answer) => {
  const p = decodeURIComponent(request.url.split('?')[0]);
  const file = p === '/trace' ? trace : path.join(dist, p === '/' ? 'index.html' : path.normalize(p));
  if (!fs.existsSync(file) || fs.statSync(file).isDirectory()) {
    answer.writeHead(404).end();
    return;
  }
  answer.writeHead(200, { 'Content-Type': types[path.extname(file)] || 'application/octet-stream' });
  fs.createReadStream(file).pipe(answer);
});
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const base = `http://127.0.0.1:${server.address().port}`;

const browser = await launch();
const context = await browser.newContext({
  viewport: { width: 1500, height: 1000 },
  serviceWorkers: 'block',
});
// Nothing but the page itself and the trace: Perfetto asks the network for updates and fonts otherwise.
await context.route(
  (url) => url.origin !== base,
  (route) => route.abort()
);
const page = await context.newPage();
const exceptions = [];
page.on('pageerror', (e) => exceptions.push(e.message));
await page.goto(`${base}/#!/?url=${encodeURIComponent(`${base}/trace`)}`);
await page.waitForFunction(() => window.app?.trace?.engine, null, { timeout: 120000 });
await page.evaluate(() => window.waitForPerfettoIdle?.(1000)).catch(() => {});

const query = (sql) =>
  page.evaluate(async (text) => {
    const result = await window.app.trace.engine.query(text);
    const rows = [],
      columns = result.columns();
    for (const it = result.iter({}); it.valid(); it.next())
      rows.push(
        Object.fromEntries(
          columns.map((c) => [c, typeof it.get(c) === 'bigint' ? Number(it.get(c)) : it.get(c)])
        )
      );
    return rows;
  }, sql);

if (expected) {
  const want = JSON.parse(fs.readFileSync(expected));
  same(
    await query("select name, value from stats where value != 0 and severity != 'info'"),
    [],
    'complaints of the trace processor'
  );
  if ('slices' in want) {
    same((await query('select count(*) n from slice where dur >= 0'))[0].n, want.slices, 'slices');
    same((await query('select count(*) n from slice where dur < 0'))[0].n, 0, 'slices without an end');
    same((await query('select sum(dur) d from slice'))[0].d, want.dur, 'their durations');
    same((await query('select count(*) n from flow'))[0].n, want.arrows, 'arrows');
    same(
      (
        await query(
          'select distinct t.name from thread t join thread_track k using (utid) join slice s on ' +
            's.track_id = k.id order by 1'
        )
      ).map((r) => r.name),
      want.threads,
      'tracks'
    );
    same(
      (
        await query(
          'select distinct name from process where name is not null and upid in (select upid from ' +
            'thread join thread_track using (utid)) order by 1'
        )
      ).map((r) => r.name),
      want.processes,
      'processes'
    );
    same(
      await query('select distinct depth from slice where dur > 0 order by 1'),
      want.depths.map((d) => ({ depth: d })),
      'depths'
    );
    // The order on the screen is that of the ranks.
    same(
      await page.evaluate(() => window.app.trace.workspace.children.map((c) => c.name.replace(/ \d+$/, ''))),
      want.order,
      'order of processes'
    );
  }
  if ('counters' in want) {
    same(
      (await query('select distinct name from counter_track order by 1'))
        .map((r) => r.name)
        .filter((n) => want.counter_tracks.includes(n)),
      want.counter_tracks,
      'tracks of counters'
    );
    same(
      (
        await query(
          `select count(*) n from counter c join counter_track t on c.track_id = t.id where t.name ` +
            `in (${want.counter_tracks.map((n) => `'${n}'`)})`
        )
      )[0].n,
      want.counters,
      'values of counters'
    );
    same(
      (
        await query(
          `select round(max(value), 6) v from counter c join counter_track t on c.track_id = t.id ` +
            `where t.name = '${want.counter_tracks[0]}'`
        )
      )[0].v,
      want.highest,
      'the highest value'
    );
  }
  same(exceptions, [], 'exceptions of the page');
}
if (picture) {
  await page.evaluate(() => {
    for (const c of window.app.trace.workspace.children.slice(0, 8)) c.expand();
  });
  if (from) {
    await page.evaluate(
      ([a, b]) => {
        const t = window.app.trace,
          w = t.timeline.visibleWindow;
        t.timeline.updateVisibleTimeHP(
          new w.constructor(new w.start.constructor(t.traceInfo.start + BigInt(a)), b - a)
        );
      },
      [Number(from), Number(to)]
    );
  }
  if (select) {
    const [{ id }] = await query(select);
    await page.evaluate(
      (i) => window.app.trace.selection.selectSqlEvent('slice', i, { switchToCurrentSelectionTab: true }),
      id
    );
  }
  await page.waitForTimeout(3000);
  await page.screenshot({ path: picture, clip: { x: 230, y: 44, width: 1270, height: 640 } });
}
await browser.close();
server.close();
if (expected) finish();
