// The page of the head: what a cluster does now, and its sessions. All it shows it asks for (docs/cluster.md,
// "HTTP").
import { byId, el, replace, options, announce } from './dom.js';
import { chart, redraw, palette, tooltip, axis, legend, hover, arrows } from './charts.js';
import { table } from './table.js';
import { count, short, duration, durationTick, percent, inGbs, gbs, iso, known } from './format.js';
import { ask, listen } from './live.js';
import { now, history, take, points } from './cluster.js';

const STEPS_S = [2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400];
// rows of a table; between questions for what no event has; answers may be so old
const MOST = 200,
  POLL_MS = 5000,
  SHARED_MS = 150;
let status = null,
  clients = [],
  sessions = [],
  heard = false,
  gone = null,
  paused = false;

const seconds = (v) => (known(v) ? duration(v * 1e6) : null);
const hundredths = (v) => (known(v) ? percent(v / 100) : null);
const n = (title, key, show) => ({
  title,
  num: true,
  get: (r) => r[key],
  show: (r) => (known(r[key]) ? show(r[key]) : null),
});
const t = (title, key) => ({ title, get: (r) => r[key], text: true });
const alarm = (text) => el('span', { class: 'badtext', text });
const STATE = {
  title: 'State',
  get: (r) => r.state,
  show: (r) =>
    ['ok', 'running', 'ended', 'logs_only'].includes(r.state)
      ? r.state.replace('_', ' ')
      : alarm(r.state || '–'),
};
const inState = (s) => now.nodes.filter((x) => x.state === s).length;
const many = (v, one, more) => `${count(v)} ${v === 1 ? one : more}`;

let said = '';
function verdict() {
  const lines = status && status.degraded ? [`Degraded: ${status.degraded}`] : [];
  for (const j of now.jobs) lines.push(...[...j.verdicts].map((v) => `${j.job_id}: ${v}`));
  for (const j of now.jobs)
    if (j.stuck && !j.verdicts.size)
      lines.push(`${j.job_id}: ${many(j.stuck, 'operation is', 'operations are')} stuck`);
  for (const s of ['stale', 'gone'])
    if (inState(s)) lines.push(`${many(inState(s), 'node is', 'nodes are')} ${s}`);
  const first = gone
    ? `${heard ? 'Connection lost' : 'No connection'} since ${iso(gone.since * 1000)}: ${gone.why}. ` +
      `Trying again; all numbers are from before.`
    : !heard
      ? 'Asking the head ...'
      : lines.length
        ? `${many(lines.length, 'thing', 'things')} to look at`
        : `All is well: ${many(inState('ok'), 'node sends', 'nodes send')}, nothing is stuck`;
  if (said === (said = first + lines.join('\n'))) return; // a screen reader reads it out at each change
  byId('verdict').className = `banner ${gone || lines.length ? 'bad' : 'good'}`;
  replace(
    byId('verdict'),
    first,
    lines.length ? el('ul', {}, ...lines.slice(0, 20).map((text) => el('li', { text }))) : null
  );
}

function cards() {
  const card = (value, text, bad) =>
      el('div', { class: bad ? 'card bad' : 'card' }, el('b', { text: value }), el('span', { text })),
    last = history[history.length - 1] || {};
  byId('job').textContent = `${location.host}${now.time ? `, frame of ${iso(now.time * 1e6)}` : ''}`;
  replace(
    byId('cards'),
    card(count(inState('ok')), `of ${count(now.nodes.length)} nodes send`),
    ...['stale', 'gone'].map((s) => card(count(inState(s)), s, inState(s))),
    card(count(now.gpus.length), 'GPUs'),
    card(known(last.util) ? hundredths(last.util) : '–', 'of them used, on average'),
    card(
      count(status ? status.sessions.length : null),
      `running session${status && status.sessions.length === 1 ? '' : 's'}`
    ),
    card(status ? duration(status.freq * 1000) : '–', 'between frames')
  );
}

async function act(path, name) {
  const done = await ask(`profiling/${path}`, { name }).then(
    (a) => tell(a.message + (a.output_file ? ` It goes to ${a.output_file}.` : ''), ''),
    (error) => !tell(error.message, 'badtext')
  );
  setTimeout(poll, SHARED_MS);
  return done;
}
const tell = (textContent, className) => Object.assign(byId('session-said'), { textContent, className });

const SESSION = [
  {
    title: 'Do',
    action: true,
    get: (s) =>
      el('button', {
        type: 'button',
        text: s.active ? 'Stop' : 'Resume',
        'aria-label': `${s.active ? 'Stop' : 'Resume'} ${s.name}`,
        'data-row': s.session_id,
        onclick: () => {
          act(s.active ? 'stop' : 'resume', s.active ? s.name : s.session_id);
          byId('sessions').firstChild.focus();
        },
      }),
  },
  t('Name', 'name'),
  { title: 'State', get: (s) => s.state, show: (s) => (s.error ? alarm(`${s.state}: ${s.error}`) : s.state) },
  { title: 'Begun', get: (s) => s.start_time, show: (s) => iso(Date.parse(s.start_time) * 1000) },
  {
    title: 'Ended',
    get: (s) => s.end_time,
    show: (s) => (s.end_time ? iso(Date.parse(s.end_time) * 1000) : null),
  },
  n('Frames', 'frames', count),
  n('Lost', 'frames_lost', count),
  n('Late', 'late', count),
  { title: 'File', get: (s) => s.output_file, wrap: true },
];

function sessionPart() {
  const field = byId('name');
  byId('start').addEventListener('submit', (event) => {
    event.preventDefault();
    const fits = /^([A-Za-z0-9_-][A-Za-z0-9._ -]{0,127})?$/.test(field.value);
    field.setAttribute('aria-invalid', String(!fits));
    if (fits)
      act('start', field.value || null).then((done) => {
        if (done) field.value = '';
      });
    else
      tell(
        'A name has letters, digits, "." "_" "-" and spaces, and begins with neither "." nor a space.',
        'badtext'
      );
  });
  byId('stop-all').addEventListener('click', () => {
    const names = sessions.filter((s) => s.active).map((s) => s.name);
    if (
      confirm(
        `Stop ${many(names.length, 'session', 'sessions')}: ${names.slice(0, 20).join(', ')}` +
          `${names.length > 20 ? ', ...' : ''}?`
      )
    )
      act('stop', null);
  });
  const update = table(byId('sessions'), SESSION, [], {
    page: 10,
    file: 'sessions.csv',
    caption: 'Sessions, those that run first',
  });
  return () => {
    byId('stop-all').disabled = !sessions.some((s) => s.active);
    update(
      sessions
        .map((s) => ({
          ...s,
          state: s.resuming
            ? 'is being read'
            : s.active
              ? 'runs'
              : s.finishing
                ? 'is being written'
                : 'ended',
        }))
        .sort((a, b) => b.active - a.active)
    );
  };
}

function live() {
  // Whole seconds, minutes, hours between lines; below that as the chart does it.
  const apart = (p) =>
    STEPS_S.find((s) => Math.max(...history.map(p)) <= 4 * s && Math.max(...history.map(p)) > 4);
  const line = (id, lines, show, max, step = () => max && max / 4) =>
    chart(
      id,
      () => {
        const list = lines(),
          end = history.length ? history[history.length - 1].time : 0;
        return {
          grid: { left: 8, right: 14, top: list.length > 1 ? 34 : 12, bottom: 8, containLabel: true },
          legend: list.length > 1 ? legend() : undefined,
          tooltip: tooltip({ trigger: 'axis', valueFormatter: (v) => (known(v) ? show(v) : '–') }),
          xAxis: axis({
            type: 'value',
            min: -300,
            max: 0,
            interval: 60,
            axisPointer: { label: { formatter: ({ value }) => `${Math.round(-value)} s ago` } },
            axisLabel: {
              formatter: (v) =>
                v
                  ? `${short(v / 60)
                      .replace('-', '−')
                      .replace('.00', '')} min`
                  : 'now',
            },
          }),
          yAxis: axis({
            type: 'value',
            min: 0,
            max,
            interval: step(),
            splitNumber: 3,
            axisLabel: { formatter: show },
          }),
          series: list.map(([name, get]) => ({
            type: 'line',
            name,
            showSymbol: false,
            lineStyle: { width: 2 },
            data: history.map((p) => [p.time - end, get(p)]),
          })),
        };
      },
      ''
    );
  line(
    'c-util',
    () => [['GPUs', (p) => p.util]],
    (v) => percent(v / 100),
    100
  );
  line(
    'c-moved',
    () => [
      ['NVLink', (p) => p.nvlink],
      ['NICs', (p) => p.nic],
      ['PCIe', (p) => p.pcie],
    ],
    gbs
  );
  line('c-busbw', () => now.jobs.slice(0, 8).map((j) => [j.job_id, (p) => p.busbw.get(j.key)]), gbs);
  line(
    'c-oldest',
    () => [['oldest', (p) => p.oldest]],
    (v) => durationTick(v * 1e6),
    undefined,
    () => apart((p) => p.oldest || 0)
  );
  return () => ['c-util', 'c-moved', 'c-busbw', 'c-oldest'].forEach(redraw);
}

const JOB = [
  t('Job', 'job_id'),
  t('Attempt', 'attempt'),
  t('User', 'uid'),
  STATE,
  n('Nodes', 'hosts', count),
  n('Processes', 'processes', count),
  n('Operations/s', 'operations_s', short),
  n('Messages GB/s', 'message_gb_s', inGbs),
  n('Bus GB/s', 'busbw', inGbs),
  n('In flight', 'in_flight', count),
  n('Stuck', 'stuck', count),
  n('Oldest', 'oldest_s', seconds),
  { title: 'Verdict', wrap: true, get: (j) => [...j.verdicts].join('; ') || null },
];
const OPEN = [
  n('Age', 'age_s', seconds),
  t('Function', 'function'),
  n('Number', 'sn', count),
  t('Communicator', 'comm'),
  n('Rank', 'rank', String),
  t('Node', 'host'),
  t('Job', 'job_id'),
  { title: 'Stuck', get: (o) => (o.stuck ? 'stuck' : ''), show: (o) => (o.stuck ? alarm('stuck') : '') },
];
const NODE = [
  t('Node', 'host'),
  STATE,
  n('Age', 'age_s', seconds),
  {
    ...n('Skew', 'skew_s', (v) => `${v < 0 ? '−' : ''}${seconds(Math.abs(v))}`),
    help: 'its clock less that of the head',
  },
  n('GPUs', 'gpu_count', count),
  n('CPU', 'cpu_util', hundredths),
  n('Memory', 'dram_util', hundredths),
  n('Disk', 'disk_util', hundredths),
  n('Lost', 'lost', count),
  n('Late', 'late', count),
  { title: 'Sent by', get: (r) => (r.agent ? 'agent' : r.client_id ? 'gsprof' : null) },
];
const GPU = [
  t('Node', 'host'),
  n('GPU', 'index', String),
  STATE,
  n('Used', 'util', hundredths),
  n('Memory', 'memory', hundredths),
  n('PCIe in GB/s', 'pcie_rx', inGbs),
  n('PCIe out GB/s', 'pcie_tx', inGbs),
  n('NVLink in GB/s', 'nvlink_rx', inGbs),
  n('NVLink out GB/s', 'nvlink_tx', inGbs),
  n('Power W', 'power', count),
  n('°C', 'temperature', count),
  t('Model', 'name'),
];
const NIC = [
  t('Node', 'host'),
  t('NIC', 'name'),
  STATE,
  n('Received GB/s', 'rx', inGbs),
  n('Sent GB/s', 'tx', inGbs),
  { ...n('Of link', 'share', percent), help: 'of the busier direction' },
  { ...n('Held', 'held', percent), help: 'share of the time in which it may not send' },
];
// What stands out of a figure: low use, the rest where it is high.
const FIGURES = {
  util: ['utilization', '%', 100, 1],
  memory: ['memory', '%', 100, -1],
  pcie: ['PCIe', 'GB/s', null, -1],
  nvlink: ['NVLink', 'GB/s', null, -1],
  power: ['power', 'W', null, -1],
  temperature: ['temperature', '°C', null, -1],
};

function tables() {
  const old = (r) => (r.state === 'stale' || r.state === 'gone' ? 'old' : null);
  const make = (id, columns, caption) =>
    table(byId(id), columns, [], { caption, file: `${id}.csv`, most: MOST, row: old });
  const jobs = make('jobs', JOB, 'Jobs; rates of the last seconds'),
    open = make('open', OPEN, 'Operations in flight, the oldest first');
  const nodes = make('nodes', NODE, 'Nodes, those that do not send first'),
    gpus = make('gpus', GPU, 'GPUs'),
    nics = make('nics', NIC, 'NICs'),
    select = byId('figure'),
    filter = byId('filter');
  options(
    select,
    Object.entries(FIGURES).map(([k, [title]]) => [k, title])
  );
  const drawHeat = heatMap(() => select.value),
    want = () => filter.value.trim().toLowerCase();
  const fitting = (list) =>
    want() ? list.filter((r) => `${r.host} ${r.name || ''} ${r.state}`.toLowerCase().includes(want())) : list;
  // Where not all can be shown the worst stand first; else each keeps its place.
  const worst = (list, key, sign, of = (r) => (known(r[key]) ? sign * r[key] : Infinity)) =>
    list.length <= MOST ? list : [...list].sort((a, b) => of(a) - of(b));
  const good = (r) => ['gone', 'stale', 'ok'].indexOf(r.state);
  const draw = () => {
    jobs(now.jobs);
    open(now.open);
    nodes([...fitting(now.nodes)].sort((a, b) => good(a) - good(b)));
    gpus(worst(fitting(now.gpus), select.value, FIGURES[select.value][3]));
    nics(worst(fitting(now.nics), 'held', -1));
    drawHeat(fitting(now.gpus));
  };
  filter.addEventListener('input', draw);
  select.addEventListener('change', draw);
  return draw;
}

// A column of cells for each node, its GPUs below each other.
function heatMap(figure) {
  const area = byId('c-heat'),
    GAP = 6;
  let columns = [],
    size = 20,
    high = 1,
    line = 1,
    cursor = null;
  const words = (g) => {
    if (!g) return g;
    const [title, unit] = FIGURES[figure()];
    const value = g[figure()];
    const said = known(value) ? `${short(value)} ${unit} ${title}` : `no ${title}, ${g.state}`;
    return `${g.host} GPU ${g.index}: ${said}`;
  };
  const step = () => high * size + GAP,
    at = (x, y) =>
      x < line * size &&
      (columns[Math.floor(y / step()) * line + Math.floor(x / size)] || [])[Math.floor((y % step()) / size)];
  chart(
    'c-heat',
    () => {
      const key = figure(),
        [title, unit, full, sign] = FIGURES[key],
        top = full || Math.max(1e-9, ...columns.map((column) => Math.max(...column.map((g) => g[key] || 0))));
      byId('heat-note').textContent =
        `A column is a node, a cell one of its GPUs. Full colour: ${short(top)} ${unit}; an outline ` +
        `alone: no number. Of ${title} the table has the ${sign > 0 ? 'lowest' : 'highest'} first ` +
        `where there are more than ${MOST}.`;
      const c = palette(),
        ratio = devicePixelRatio || 1,
        image = el('canvas', { width: area.clientWidth * ratio, height: area.clientHeight * ratio }),
        context = image.getContext('2d');
      const colours = Array.from(
        { length: 65 },
        (_, i) => `rgb(${c.even.map((e, k) => Math.round(e + ((c.wait[k] - e) * i) / 64)).join()})`
      );
      context.scale(ratio, ratio);
      Object.assign(context, { strokeStyle: c.text, lineWidth: 2 });
      columns.forEach((column, x) =>
        column.forEach((g, i) => {
          const v = g[key],
            box = [(x % line) * size, Math.floor(x / line) * step() + i * size, size - 1, size - 1];
          context.fillStyle = known(v)
            ? colours[Math.min(64, Math.max(0, Math.round((64 * v) / top)))]
            : c.outside;
          context.fillRect(...box);
          if (!known(v)) context.clearRect(box[0] + 1, box[1] + 1, size - 3, size - 3);
          if (cursor && cursor[0] === x && cursor[1] === i) context.strokeRect(...box);
        })
      );
      return {
        series: [
          {
            type: 'custom',
            coordinateSystem: 'none',
            silent: true,
            data: [0],
            renderItem: (params, api) => ({
              type: 'image',
              style: { x: 0, y: 0, width: api.getWidth(), height: api.getHeight(), image },
            }),
          },
        ],
      };
    },
    '',
    (instance) => hover(instance, area, (x, y) => words(at(x, y)))
  );
  arrows(area, ([down, right]) => {
    if (!columns.length) return;
    const c = cursor ? Math.max(0, Math.min(columns.length - 1, cursor[0] + right)) : 0;
    cursor = [c, cursor ? Math.max(0, Math.min(columns[c].length - 1, cursor[1] + down)) : 0];
    redraw('c-heat');
    announce(words(columns[c][cursor[1]]));
  });
  return (gpus) => {
    const by = new Map();
    for (const g of gpus) by.has(g.node) ? by.get(g.node).push(g) : by.set(g.node, [g]);
    columns = [...by.values()];
    area.hidden = byId('heat-note').hidden = gpus.length <= 8; // the table says it all
    high = Math.max(1, ...columns.map((column) => column.length));
    const lines = () => {
      line = Math.max(1, Math.floor(area.clientWidth / size));
      return Math.ceil(columns.length / line) * step();
    };
    for (size = 20; size > 4 && lines() > 400; ) size--;
    area.style.height = `${lines()}px`;
    redraw('c-heat');
  };
}

let asked = 0;
async function poll() {
  const mine = ++asked;
  // the events tell what is wrong
  const [c, s] = await Promise.all([ask('clients'), ask('profiling/sessions')]).catch(() => []);
  if (!c || mine !== asked) return;
  clients = c.clients;
  sessions = s.sessions;
  draw();
}

let updates = [];
function draw() {
  byId('main').classList.toggle('old', !!gone);
  verdict();
  if (!paused && !document.hidden) for (const update of updates) update();
}

function begin() {
  const pause = byId('pause');
  updates = [cards, sessionPart(), live(), tables()];
  pause.addEventListener('click', () => {
    pause.setAttribute('aria-pressed', String((paused = !paused)));
    draw();
  });
  addEventListener('visibilitychange', draw);
  setInterval(() => {
    if (heard && !gone && !document.hidden) poll();
  }, POLL_MS);
  draw();
  listen(
    (name, data) => {
      if (!heard || gone)
        ask('.').then(
          (r) => {
            byId('foot').textContent = r.server;
          },
          () => {}
        );
      heard = true;
      gone = null;
      if (name === 'state') {
        status = data;
        setTimeout(poll, SHARED_MS);
      }
      if (name === 'points') points(data, status.freq / 1000);
      if (name === 'frame') take(data, clients);
      if (name !== 'points') draw(); // a frame comes right behind
    },
    (since, why) => {
      gone = { since, why };
      draw();
    }
  );
}

export const parts = [['s-state', begin]];
