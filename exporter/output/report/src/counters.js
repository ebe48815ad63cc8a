// counters.html: what NICs, GPUs and the host counted between two sweeps. The judgement is the program's
// (verdict.c, rank.c); here it is only shown. `pair` is what `counters summarize --json` prints.
import { byId, el, replace, options } from './dom.js';
import { chart, redraw, palette, tooltip, axis, legend, measured, zoom } from './charts.js';
import { table } from './table.js';
import { count, short, amount, duration, percent, known } from './format.js';

const {
  pair,
  more: { meanings, series, figures },
} = JSON.parse(byId('data').textContent);
const entities = pair.entities;
const same = (a) => entities.filter((e) => e.name === a.name).length > 1;
for (const e of entities) {
  e.title = same(e) ? `${e.name} (${e.source})` : e.name;
  e.at = new Map(e.counters.map((c) => [c.name, c]));
}
const sources = [...new Set(entities.map((e) => e.source))];
const groups = [...new Set(meanings.map((m) => m[0]))];
const meaning = new Map(meanings.map(([, name, unit, text]) => [name, { unit, text }]));
// What a counter counts, as words; of some of Ethernet's drivers nobody but the driver knows.
const unknown = 'its driver alone knows';
const counted = (of, name) =>
  (meaning.get(name) || {}).text || (of.map((e) => e.at.get(name)).find(Boolean) || {}).meaning || unknown;
const moved = (c) => c.state === 'changed' || c.state === 'level';
const narrow = (id) => byId(id).clientWidth < 600;
// Labels below an axis stand aslant where they would not find room side by side; `less`: what the other axis
// takes.
const turned = (id, names, less = 80) =>
  Math.max(0, ...names.map((n) => n.length)) * names.length * 8 > byId(id).clientWidth - less ? 55 : 0;

const perSecond = (c, v = c.rate) =>
  !known(v) ? null : c.unit === 'bytes' ? `${amount(v)}/s` : v >= 1000 ? count(v) : short(v);
const share = (v) => (!known(v) ? null : v === 0 ? '0 %' : v < 0.0005 ? '< 0.1 %' : percent(v));
// What a counter did, as a figure or, where it has none, as a word.
const difference = (c) => (c.state === 'none' || moved(c) ? count(c.diff) : c.state);
// Of an entity by name: what did not change is 0, what is not there is nothing.
const counterOf = (e, name) =>
  e.at.get(name) ||
  (name in e.unchanged ? { name, state: 'none', diff: 0, rate: 0, after: e.unchanged[name] } : null);

function standsOut() {
  const bad = pair.findings.filter((f) => f.level !== 'info').length;
  byId('verdict').classList.add(bad ? 'bad' : 'good');
  byId('verdict').textContent = bad
    ? `${count(bad)} finding${bad === 1 ? '' : 's'}, the worst first`
    : pair.verdict;
  const list = (levels) =>
    pair.findings
      .filter((f) => levels.includes(f.level))
      .map((f) =>
        el(
          'li',
          {},
          f.level === 'info' ? null : el('b', { class: 'badtext', text: `${f.level.toUpperCase()} ` }),
          f.text,
          ' ',
          el('span', { class: 'dim', text: f.advice })
        )
      );
  const notes = list(['info']);
  replace(
    byId('findings'),
    bad ? el('ul', {}, ...list(['critical', 'warning'])) : null,
    notes.length
      ? el(
          'details',
          { open: !bad },
          el('summary', { text: `${count(notes.length)} worth to know, and no fault` }),
          el('ul', {}, ...notes)
        )
      : null
  );
}

function compared() {
  const both = [pair.before, pair.after],
    gap = Date.parse(both[1].started_at) - Date.parse(both[0].finished_at);
  byId('job').textContent = both
    .map((s) => s.path)
    .filter(Boolean)
    .join(' → ');
  byId('foot').textContent = `nccl-inspector ${pair.version || ''}`;
  const card = (value, text, bad) =>
    el('div', { class: bad ? 'card bad' : 'card' }, el('b', { text: value }), el('span', { text }));
  const unread = pair.unread.filter((u) => !u.left_out).length;
  const all = entities.reduce((n, e) => n + e.counters.length + Object.keys(e.unchanged).length, 0);
  replace(
    byId('cards'),
    card(count(pair.total_non_zero), `of ${count(all)} counters changed`),
    card(duration(pair.seconds * 1e6), 'between the readings'),
    card(gap >= 0 ? duration(gap * 1e3) : '–', 'from the end of one sweep to the begin of the other'),
    card(count(entities.length), entities.length === 1 ? 'entity' : 'entities'),
    card(count(unread), 'not readable', unread > 0)
  );
  table(
    byId('sweeps'),
    [
      { title: 'Sweep', get: (s) => s.name },
      { title: 'File', get: (s) => s.path, text: true },
      { title: 'Of', get: (s) => s.input_path, text: true },
      { title: 'Started', get: (s) => s.started_at },
      { title: 'Finished', get: (s) => s.finished_at },
      {
        title: 'Took',
        num: true,
        get: (s) => s.duration_s,
        show: (s) => (known(s.duration_s) ? duration(s.duration_s * 1e6) : null),
      },
    ],
    [
      { ...both[0], name: 'before' },
      { ...both[1], name: 'after' },
    ],
    { page: 0, caption: 'The two sweeps' }
  );
  if (pair.unread.length) {
    table(
      byId('unread'),
      [
        { title: 'Sweep', get: (u) => u.sweep },
        { title: 'Path', get: (u) => u.path, wrap: true },
        { title: '', get: (u) => (u.left_out ? 'left out' : 'not read') },
        { title: 'Why', get: (u) => u.why, wrap: true },
      ],
      pair.unread,
      { caption: 'What could not be read, or is left out', file: 'unread.csv' }
    );
  }
}

// A bar for each of some names.
function bars(id, names, values, title, colour = 0) {
  chart(
    id,
    () => {
      if (!values.some((v) => v > 0)) return null;
      const c = palette();
      return {
        grid: { left: 12, right: 16, top: 30, bottom: 12, containLabel: true },
        tooltip: tooltip({ trigger: 'axis' }),
        xAxis: axis({
          type: 'category',
          data: names,
          splitLine: { show: false },
          axisLabel: { rotate: turned(id, names), width: 200, overflow: 'truncate' },
        }),
        yAxis: axis({
          type: 'value',
          name: title,
          nameLocation: 'end',
          nameTextStyle: { color: c.dim, align: 'left' },
          minInterval: 1,
        }),
        series: [{ type: 'bar', data: values, barMaxWidth: 46, itemStyle: { color: c.series[colour] } }],
      };
    },
    names.length ? 'No counter changed.' : 'There is nothing to show.'
  );
}

// What each NIC and GPU carried: bytes a second, the busiest first, on one axis in one unit; shares of links
// beside it in the table.
const SHOWN = 48;
function carried() {
  const moves = figures.filter((f) => known(f.rx_bytes_s) || known(f.tx_bytes_s)),
    shown = moves.slice(0, SHOWN);
  const whose = (f) => (f.source === 'gpu' ? `${f.name} (NVLink)` : f.name);
  const tell = (f, v, part) => `${amount(v)}/s${known(f[part]) ? `, ${share(f[part])} of its link` : ''}`;
  byId('carried-note').textContent =
    moves.length > SHOWN
      ? `The ${SHOWN} that carried most, of ${count(moves.length)}; all are in the table.`
      : '';
  chart(
    'c-carried',
    () => {
      if (!shown.length) return null;
      const c = palette(),
        names = shown.map(whose);
      const bar = (name, key, color) => ({
        name,
        type: 'bar',
        data: shown.map((f) => f[key]),
        itemStyle: { color },
        barMaxWidth: 22,
      });
      return {
        grid: { left: 12, right: 16, top: 44, bottom: 12, containLabel: true },
        legend: legend(),
        tooltip: tooltip({
          trigger: 'axis',
          axisPointer: { type: 'shadow' },
          formatter: ([p]) => {
            const f = shown[p.dataIndex];
            return [
              names[p.dataIndex],
              `receives ${tell(f, f.rx_bytes_s, 'rx_share')}`,
              `sends ${tell(f, f.tx_bytes_s, 'tx_share')}`,
            ].join('\n');
          },
        }),
        xAxis: axis({
          type: 'category',
          data: names,
          splitLine: { show: false },
          axisLabel: { rotate: turned('c-carried', names), width: 200, overflow: 'truncate' },
        }),
        yAxis: measured(
          'bytesPerS',
          shown.flatMap((f) => [f.rx_bytes_s, f.tx_bytes_s]),
          'carried',
          { type: 'value', min: 0, nameLocation: 'end', nameTextStyle: { color: c.dim, align: 'left' } }
        ),
        series: [bar('receives', 'rx_bytes_s', c.series[0]), bar('sends', 'tx_bytes_s', c.series[4])],
      };
    },
    'No NIC and no GPU here counts bytes: neither sweep has one.'
  );
  const n = (title, key, show, help) => ({
    title,
    help,
    csv: key,
    num: true,
    get: (f) => f[key],
    show: (f) => (known(f[key]) ? show(f[key]) : null),
  });
  const rate = (v) => `${amount(v)}/s`;
  const columns = [
    { title: 'Name', csv: 'name', get: (f) => f.name },
    { title: 'Source', csv: 'source', get: (f) => f.source },
    n('Receives', 'rx_bytes_s', rate, 'of a GPU: by NVLink'),
    n('Of link', 'rx_share', share),
    n('Sends', 'tx_bytes_s', rate),
    n('Of link', 'tx_share', share),
    n('Held', 'paused_share', share, 'part of the time in which a direction was held, the worst class'),
    n('Errors a second', 'errors_s', short, 'retries and errors'),
    n('Busy', 'busy_share', share),
    n('Clock MHz', 'clock_mhz', count),
    n('Power W', 'power_w', count),
    n('Throttled', 'throttled_share', share),
  ].filter((col, i) => i < 2 || figures.some((f) => known(f[col.csv])));
  if (figures.length)
    table(byId('carried'), columns, figures, {
      page: 16,
      file: 'figures.csv',
      caption: 'Between the sweeps, what is unusual first, then the busiest',
    });
}

function devices() {
  bars(
    'c-changed',
    entities.map((e) => e.title),
    entities.map((e) => e.non_zero),
    'counters that changed'
  );
  table(
    byId('entities'),
    [
      { title: 'Name', get: (e) => e.name },
      { title: 'Source', get: (e) => e.source },
      { title: 'Link', get: (e) => e.link },
      { title: 'PCI', get: (e) => e.pci },
      { title: 'Changed', num: true, get: (e) => e.non_zero, show: (e) => count(e.non_zero) },
      {
        title: 'Of',
        num: true,
        get: (e) => e.counters.length + Object.keys(e.unchanged).length,
        show: (e) => count(e.counters.length + Object.keys(e.unchanged).length),
      },
      { title: 'Resets', num: true, get: (e) => e.resets },
      { title: 'Seconds', num: true, get: (e) => e.seconds, show: (e) => short(e.seconds) },
      {
        title: 'Note',
        wrap: true,
        get: (e) =>
          [
            e.in_before ? (e.in_after ? null : 'gone') : 'new',
            e.reloaded ? 'loaded anew' : null,
            e.warning,
            e.about,
          ]
            .filter(Boolean)
            .join('; '),
      },
    ],
    entities,
    { file: 'entities.csv', caption: 'Each NIC, GPU and the host' }
  );
}

function topCounters() {
  const select = byId('top-of');
  const worst = pair.findings.find((f) => f.level !== 'info' && f.counter) || {};
  const best = entities.findIndex((e) => e.name === worst.entity && e.at.has(worst.counter));
  options(
    select,
    entities.map((e, i) => [i, e.title]),
    Math.max(0, best)
  );
  const of = () => entities[select.value] || { counters: [] };
  chart(
    'c-top',
    () => {
      const list = of()
        .counters.filter((c) => c.rate > 0)
        .slice(0, 20)
        .reverse();
      if (!list.length) return null;
      const c = palette();
      byId('c-top').style.height = `${70 + list.length * 22}px`;
      return {
        grid: { left: 12, right: 24, top: 8, bottom: 30, containLabel: true },
        tooltip: tooltip({
          trigger: 'axis',
          formatter: ([p]) =>
            `${p.name}\n${perSecond(list[p.dataIndex])} a ` +
            `second${known(list[p.dataIndex].share) ? `, ${share(list[p.dataIndex].share)}` : ''}`,
        }),
        xAxis: measured(
          'number',
          list.map((x) => x.rate),
          'a second',
          { nameGap: 26 }
        ),
        yAxis: axis({
          type: 'category',
          data: list.map((x) => x.name),
          splitLine: { show: false },
          axisLabel: {
            color: c.text,
            fontSize: 11,
            hideOverlap: false,
            width: narrow('c-top') ? 150 : 320,
            overflow: 'truncate',
          },
        }),
        series: [
          { type: 'bar', data: list.map((x) => x.rate), itemStyle: { color: c.series[0] }, barMaxWidth: 15 },
        ],
      };
    },
    'No counter of it rose.'
  );
  function draw() {
    redraw('c-top');
    table(
      byId('top'),
      [
        { title: 'Counter', get: (c) => c.name },
        { title: 'Difference', num: true, get: (c) => c.diff, show: difference },
        { title: 'a second', num: true, get: (c) => c.rate, show: (c) => perSecond(c) },
        { title: 'Share', num: true, get: (c) => c.share, show: (c) => share(c.share) },
        {
          title: 'Others, a second',
          num: true,
          get: (c) => c.others_rate,
          show: (c) => perSecond(c, c.others_rate),
        },
        {
          title: 'After',
          num: true,
          get: (c) => c.after,
          show: (c) => (known(c.after) && c.after !== 'unreadable' ? count(c.after) : c.after),
        },
        { title: 'Unit', get: (c) => c.unit },
        { title: 'What it counts', wrap: true, get: (c) => c.meaning || unknown },
        { title: 'unusual', get: (c) => c.unusual, hidden: true },
      ],
      of().counters,
      {
        page: 20,
        file: 'counters.csv',
        caption: `${of().title || ''}: every counter that changed or has no figure`,
      }
    );
  }
  select.addEventListener('change', draw);
  draw();
}

// What can be shown side by side: [title, entities, rows of {name, values, texts}].
function views() {
  const list = [];
  const row = (of, name, field = 'rate') => {
    const cells = of.map((e) => counterOf(e, name));
    return {
      name,
      values: cells.map((c) => (c && known(c[field]) ? c[field] : null)),
      texts: cells.map((c) =>
        c ? `${perSecond(c) || difference(c)}${c.rate ? ' a second' : ''}` : 'not there'
      ),
    };
  };
  const rows = (of, names) => names.map((n) => row(of, n)).filter((r) => r.values.some((v) => v > 0));
  for (const source of sources) {
    const of = entities.filter((e) => e.source === source),
      best = new Map();
    for (const e of of)
      for (const c of e.counters)
        if (c.rate > 0) best.set(c.name, Math.max(best.get(c.name) ?? -9, c.unusual ?? -9));
    const names = [...best]
      .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
      .slice(0, 30)
      .map(([n]) => n);
    if (names.length) list.push([`${source}: the most unusual counters`, of, rows(of, names)]);
    if (source !== 'cxi') continue;
    const changed = groups.map((g) =>
      of.map((e) => e.counters.filter((c) => moved(c) && c.groups.includes(g)).length)
    );
    list.push([
      'cxi: how many counters changed in each group',
      of,
      groups
        .map((g, i) => ({ name: g, values: changed[i], texts: changed[i].map((n) => `${n} changed`) }))
        .filter((r) => r.values.some((v) => v > 0)),
    ]);
    for (const g of groups)
      list.push([
        `cxi: ${g}`,
        of,
        rows(
          of,
          meanings.filter((m) => m[0] === g).map((m) => m[1])
        ),
      ]);
  }
  return list.filter(([, , r]) => r.length);
}

function sideBySide() {
  const list = views(),
    select = byId('heat-what');
  options(
    select,
    list.map(([title], i) => [i, title])
  );
  chart(
    'c-heat',
    () => {
      const [, of, rows] = list[select.value] || [null, [], []];
      if (!rows.length) return null;
      const c = palette(),
        max = rows.map((r) => Math.max(...r.values));
      byId('c-heat').style.height = `${90 + rows.length * 20}px`;
      const mix = (t) => `rgb(${c.even.map((v, i) => Math.round(v + (c.wait[i] - v) * t)).join(',')})`;
      return {
        grid: { left: 12, right: 16, top: 8, bottom: 12, containLabel: true },
        tooltip: tooltip({
          formatter: ({ value: [x, y] }) => `${of[x].title}, ${rows[y].name}\n${rows[y].texts[x]}`,
        }),
        xAxis: axis({
          type: 'category',
          data: of.map((e) => e.title),
          splitLine: { show: false },
          axisLabel: {
            rotate: turned(
              'c-heat',
              of.map((e) => e.title),
              narrow('c-heat') ? 200 : 360
            ),
            width: 120,
            overflow: 'truncate',
          },
        }),
        yAxis: axis({
          type: 'category',
          inverse: true,
          data: rows.map((r) => r.name),
          splitLine: { show: false },
          axisLabel: {
            color: c.text,
            fontSize: 11,
            hideOverlap: false,
            width: narrow('c-heat') ? 150 : 320,
            overflow: 'truncate',
          },
        }),
        dataZoom: [zoom({ xAxisIndex: 0, filterMode: 'none' })],
        series: [
          {
            type: 'custom',
            clip: true,
            data: rows.flatMap((r, y) => r.values.map((v, x) => [x, y, v])).filter(([, , v]) => v !== null),
            renderItem: (params, api) => {
              const [x, y] = api.coord([api.value(0), api.value(1)]),
                [w, h] = api.size([1, 1]),
                top = max[api.value(1)];
              return {
                type: 'rect',
                shape: { x: x - w / 2 + 0.5, y: y - h / 2 + 0.5, width: w - 1, height: h - 1 },
                style: { fill: mix(top > 0 ? (api.value(2) / top) ** 0.6 : 0) },
              };
            },
          },
        ],
      };
    },
    'Nothing rose.'
  );
  select.addEventListener('change', () => redraw('c-heat'));
}

function groupTables() {
  const cassini = entities.filter((e) => e.source === 'cxi');
  bars(
    'c-groups',
    cassini.length ? groups : [],
    groups.map((g) =>
      cassini.reduce((n, e) => n + e.counters.filter((c) => moved(c) && c.groups.includes(g)).length, 0)
    ),
    'counters that changed, all NICs',
    2
  );
  const important = Object.entries(pair.important_metrics).map(([id, m]) => [m.metric_name, id]);
  const list = [
    ...(cassini.length
      ? [
          ['Important metrics', cassini, important],
          ...groups.map((g) => [g, cassini, meanings.filter((m) => m[0] === g).map((m) => [m[1]])]),
        ]
      : []),
    ...sources.map((source) => {
      const of = entities.filter((e) => e.source === source);
      return [
        `all that changed: ${source}`,
        of,
        [...new Set(of.flatMap((e) => e.counters.map((c) => c.name)))].sort().map((n) => [n]),
      ];
    }),
  ];
  const select = byId('group'),
    figures = byId('figures');
  options(
    select,
    list.map(([title], i) => [i, title])
  );
  function draw() {
    if (!list.length) return;
    const [title, of, names] = list[select.value],
      field = figures.value;
    const show = { diff: difference, rate: (c) => perSecond(c), share: (c) => share(c.share) }[field];
    table(
      byId('group-table'),
      [
        { title: 'Counter', get: (r) => r[0] },
        ...(title === 'Important metrics' ? [{ title: 'Metric', num: true, get: (r) => Number(r[1]) }] : []),
        {
          title: 'Unit',
          get: (r) => (meaning.get(r[0]) || of.map((e) => e.at.get(r[0])).find(Boolean) || {}).unit,
        },
        ...of.map((e) => ({
          title: e.title,
          num: true,
          get: (r) => (counterOf(e, r[0]) || {})[field],
          show: (r) => {
            const c = counterOf(e, r[0]);
            return c && show(c);
          },
        })),
        { title: 'What it counts', wrap: true, get: (r) => counted(of, r[0]) },
      ],
      names,
      { page: 60, file: 'group.csv', caption: `${title}: ${count(names.length)} counters` }
    );
  }
  for (const s of [select, figures]) s.addEventListener('change', draw);
  draw();
}

function rates() {
  if (!series || !series.lines.length) {
    byId('s-rates').remove();
    for (const a of document.querySelectorAll('#nav a[href="#s-rates"]')) a.parentElement.remove();
    return;
  }
  const names = [...new Set(series.lines.map((l) => l.counter))],
    select = byId('rates-of');
  options(
    select,
    names.map((n) => [n, n])
  );
  chart(
    'c-rates',
    () => {
      const lines = series.lines.filter((l) => l.counter === select.value),
        unit = lines[0].unit;
      return {
        grid: { left: 12, right: 24, top: 40, bottom: 34, containLabel: true },
        legend: legend(),
        tooltip: tooltip({ trigger: 'axis', valueFormatter: (v) => perSecond({ unit }, v) || '–' }),
        xAxis: axis({
          type: 'value',
          name: 'seconds since the first sample',
          nameGap: 24,
          min: 0,
          max: 'dataMax',
        }),
        yAxis: measured(
          unit === 'bytes' ? 'bytesPerS' : 'number',
          lines.flatMap((l) => l.rate),
          'a second',
          { type: 'value', nameLocation: 'end', nameTextStyle: { color: palette().dim, align: 'left' } }
        ),
        dataZoom: [zoom({ xAxisIndex: 0, filterMode: 'none' })],
        series: lines.map((l) => ({
          type: 'line',
          name: l.entity,
          showSymbol: false,
          data: l.rate.map((v, i) => [series.seconds[i], v]),
        })),
      };
    },
    ''
  );
  select.addEventListener('change', () => redraw('c-rates'));
}

export const parts = [
  ['s-stand', standsOut],
  ['s-carried', carried],
  ['s-sweeps', compared],
  ['s-nics', devices],
  ['s-top', topCounters],
  ['s-heat', sideBySide],
  ['s-groups', groupTables],
  ['s-method', rates],
];
