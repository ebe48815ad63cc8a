// The page of `diff`: two runs beside each other. The judgement is the program's (exporter/model/diff); here
// it is only shown. The data are what `diff --json` prints.
import { byId, el, replace, options } from './dom.js';
import { chart, redraw, palette, tooltip, axis, legend, measured, zoom } from './charts.js';
import { table } from './table.js';
import { count, duration, known } from './format.js';

const diff = JSON.parse(byId('data').textContent);
const runs = [diff.a, diff.b].map((r, i) => ({ ...r, title: 'AB'[i] }));
const points = (v) =>
  known(v) ? `${v > 0 ? '+' : v < 0 ? '−' : ''}${Math.abs(v * 100).toFixed(1)} %` : null;
const changed = (r) => r.verdict === 'slower' || r.verdict === 'faster';
const narrow = (id) => byId(id).clientWidth < 600;

function verdict() {
  byId('verdict').classList.add(diff.rows.some((r) => r.verdict === 'slower') ? 'bad' : 'good');
  byId('verdict').textContent = diff.verdict;
  byId('job').textContent = runs.map((r) => `${r.title}: ${r.path}`).join(' · ');
  byId('foot').textContent = `nccl-inspector ${diff.version || ''}`;
  replace(
    byId('notes'),
    diff.notes.length ? el('ul', {}, ...diff.notes.map((text) => el('li', { text }))) : null
  );
  const card = (value, text, bad) =>
    el('div', { class: bad ? 'card bad' : 'card' }, el('b', { text: value }), el('span', { text }));
  const n = (v) => count(diff.rows.filter((r) => r.verdict === v).length);
  const all = `of ${count(diff.rows.length)} rows`;
  replace(
    byId('cards'),
    card(n('slower'), `slower, ${all}`, n('slower') !== '0'),
    card(n('faster'), `faster, ${all}`),
    card(n('unclear'), 'too noisy to tell'),
    ...runs.map((r) =>
      card(r.steps ? count(r.steps) : '–', `steps in ${r.title}, from ${r.from}`, !r.complete)
    )
  );
}

function steps() {
  const list = runs.filter((r) => r.step_us.length);
  chart(
    'c-steps',
    () => {
      if (!list.length) return null;
      return {
        grid: { left: 12, right: 24, top: 40, bottom: 34, containLabel: true },
        legend: legend(),
        tooltip: tooltip({ trigger: 'axis', valueFormatter: duration }),
        xAxis: axis({ type: 'value', name: 'step', nameGap: 24, min: 0, max: 'dataMax' }),
        yAxis: measured(
          'us',
          list.flatMap((r) => r.step_us.filter(known)),
          ''
        ),
        dataZoom: [zoom({ xAxisIndex: 0, filterMode: 'none' })],
        series: list.map((r) => ({
          type: 'line',
          name: r.title,
          showSymbol: false,
          lineStyle: { width: 1.2 },
          data: r.step_us.map((v, i) => [(i + 1) * r.bin_steps, v]),
        })),
      };
    },
    'Neither run has steps.'
  );
  chart(
    'c-spread',
    () => {
      const all = list.flatMap((r) => r.step_us.filter(known)).sort((a, b) => a - b);
      if (!all.length) return null;
      // Pauses would push all others into one bar: what is beyond 1 % of the steps is in the last one.
      const low = all[0],
        high = all[Math.floor(0.99 * (all.length - 1))],
        bars = 40,
        width = (high - low) / bars || 1;
      const share = (r) => {
        const at = new Array(bars).fill(0);
        for (const v of r.step_us)
          if (known(v)) at[Math.min(bars - 1, Math.floor((v - low) / width))] += 100 / r.step_us.length;
        return at;
      };
      return {
        grid: { left: 12, right: 24, top: 40, bottom: 34, containLabel: true },
        legend: legend(),
        tooltip: tooltip({ trigger: 'axis', valueFormatter: (v) => `${v.toFixed(1)} % of the steps` }),
        xAxis: axis({
          type: 'category',
          name: 'step took',
          nameGap: 24,
          data: Array.from({ length: bars }, (_, i) => duration(low + i * width)),
          splitLine: { show: false },
        }),
        yAxis: axis({ type: 'value', axisLabel: { formatter: (v) => `${v} %` } }),
        series: list.map((r) => ({
          type: 'line',
          step: 'middle',
          name: r.title,
          showSymbol: false,
          areaStyle: { opacity: 0.15 },
          data: share(r),
        })),
      };
    },
    'Neither run has steps.'
  );
}

function changes() {
  const select = byId('which'),
    kinds = [...new Set(diff.rows.map((r) => r.kind))];
  options(
    select,
    [['changed', 'what changed'], ['all', 'all rows'], ...kinds.map((k) => [k, `${k} rows`])],
    diff.changed ? 'changed' : 'all'
  );
  const of = () =>
    diff.rows.filter((r) =>
      select.value === 'all' ? true : select.value === 'changed' ? changed(r) : r.kind === select.value
    );
  chart(
    'c-changes',
    () => {
      const list = of().slice(0, 30).reverse(),
        c = palette();
      if (!list.length) return null;
      const colour = (r) =>
        r.verdict === 'slower' ? c.series[1] : r.verdict === 'faster' ? c.series[2] : c.dim;
      byId('c-changes').style.height = `${70 + list.length * 22}px`;
      return {
        grid: { left: 12, right: 24, top: 8, bottom: 34, containLabel: true },
        tooltip: tooltip({
          formatter: ({ dataIndex: i }) =>
            `${list[i].name}\n${points(list[i].change)}, ${points(list[i].low)} to ` +
            `${points(list[i].high)}\n${list[i].verdict}`,
        }),
        xAxis: axis({
          type: 'value',
          name: 'change, with its interval',
          nameGap: 24,
          axisLabel: { formatter: (v) => `${+(v * 100).toFixed(2)} %` },
        }),
        yAxis: axis({
          type: 'category',
          data: list.map((r) => r.name),
          splitLine: { show: false },
          axisLabel: {
            color: c.text,
            fontSize: 11,
            hideOverlap: false,
            width: narrow('c-changes') ? 130 : 320,
            overflow: 'truncate',
          },
        }),
        series: [
          {
            type: 'custom',
            data: list.map((r, i) => [r.change, i, r.low, r.high]),
            encode: { x: [0, 2, 3], y: 1 },
            renderItem: (params, api) => {
              const [x, y] = api.coord([api.value(0), api.value(1)]),
                from = api.coord([api.value(2), 0])[0],
                to = api.coord([api.value(3), 0])[0];
              const fill = colour(list[params.dataIndex]);
              return {
                type: 'group',
                children: [
                  {
                    type: 'rect',
                    shape: { x: from, y: y - 1, width: Math.max(1, to - from), height: 2 },
                    style: { fill },
                  },
                  { type: 'circle', shape: { cx: x, cy: y, r: 4 }, style: { fill } },
                ],
              };
            },
          },
        ],
      };
    },
    'Nothing changed.'
  );
  function draw() {
    redraw('c-changes');
    const figure = (title, key, show) => ({
      title,
      csv: key,
      num: true,
      get: (r) => r[key],
      show: (r) => (known(r[key]) ? show(r[key]) : null),
    });
    table(
      byId('changes'),
      [
        { title: 'Kind', csv: 'kind', get: (r) => r.kind },
        { title: 'What', csv: 'name', get: (r) => r.name, text: true },
        figure('A', 'a_us', duration),
        figure('B', 'b_us', duration),
        figure('Change', 'change', points),
        figure('From', 'low', points),
        figure('To', 'high', points),
        figure('In a step', 'in_step_us', (v) => `${v < 0 ? '−' : '+'}${duration(Math.abs(v))}`),
        {
          title: 'Verdict',
          csv: 'verdict',
          get: (r) => r.verdict,
          show: (r) =>
            el('span', {
              class: r.verdict === 'slower' ? 'badtext' : r.verdict === 'faster' ? null : 'dim',
              text: r.verdict,
            }),
        },
      ],
      of(),
      { page: 40, file: 'diff.csv', caption: 'Each quantity that both runs have' }
    );
  }
  select.addEventListener('change', draw);
  draw();
}

export const parts = [
  ['s-verdict', verdict],
  ['s-steps', steps],
  ['s-changes', changes],
];
