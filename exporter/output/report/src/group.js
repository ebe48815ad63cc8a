// One operation, size and timing source: over the run, distribution, operations in order, figures.
import { page, groups, groupAt, series, cells, comms, binTime } from './data.js';
import { byId, el, options, replace } from './dom.js';
import { chart, redraw, palette, tooltip, axis, legend, measured, zoom } from './charts.js';
import { count, duration, percent, operation, known, since as after, gbs, inGbs } from './format.js';
import { runAxis } from './time_axis.js';

const MANY_COMMS = 7; // colours to tell apart

export function oneGroup() {
  const select = byId('group');
  options(
    select,
    groups.map((g) => [
      g.index,
      `${operation(g)}, ${g.typeName}, ${g.timingName} (${percent(g.share)} of the time)`,
    ])
  );
  const chosen = () => groupAt.get(Number(select.value));
  const since = (b) => after(binTime(b) - page.first_us);

  chart(
    'c-run',
    () => {
      const g = chosen(),
        s = g && series.get(g.index);
      if (!s) return null;
      const c = palette();
      const line = (name, values, color, type) => ({
        name,
        type: 'line',
        color,
        data: values.map((v, b) => [b + 0.5, v]),
        showSymbol: s.n.filter(Boolean).length < 12,
        symbolSize: 5,
        connectNulls: true,
        lineStyle: { width: name === 'p50' ? 2.5 : 1.3, type },
      });
      return {
        grid: { left: 12, right: 16, top: 36, bottom: 40, containLabel: true },
        legend: legend(),
        dataZoom: [zoom()],
        tooltip: tooltip({
          trigger: 'axis',
          formatter: (list) => {
            const b = list[0].dataIndex;
            return [
              since(b),
              ...list.map((l) => `${l.seriesName}  ${duration(l.value[1])}`),
              `${count(s.n[b])} records`,
            ].join('\n');
          },
        }),
        xAxis: runAxis(
          page.n_bins,
          1,
          page.start_times ? 'time since the first operation' : 'time of the dump since the first'
        ),
        yAxis: measured('us', [...s.us_p10, ...s.us_p99].filter(known), ''),
        series: [
          line('p99', s.us_p99, c.series[1], 'solid'),
          line('p90', s.us_p90, c.series[4], 'solid'),
          line('p50', s.us_p50, c.series[0], 'solid'),
          line('p10', s.us_p10, c.series[2], 'dashed'),
        ],
      };
    },
    'This page carries no series for this group (only for those with the largest share of time).'
  );

  chart(
    'c-hist',
    () => {
      const g = chosen(),
        h = g && cells.get(g.cell);
      if (!h || !h.hist.length) return null;
      const c = palette(),
        n = h.hist.length;
      const edge = (i) => (h.log ? h.lo * (h.hi / h.lo) ** (i / n) : h.lo + ((h.hi - h.lo) * i) / n);
      const log = h.log && h.hi > h.lo;
      const data = h.hist.map((v, i) => [edge(i), edge(i + 1), v]);
      return {
        grid: { left: 12, right: 16, top: 16, bottom: 40, containLabel: true },
        tooltip: tooltip({
          trigger: 'item',
          formatter: ({ data: [a, b, v] }) => `${gbs(a)} to ${gbs(b)}\n${count(v)} operations`,
        }),
        xAxis: measured('gbs', [h.lo, h.hi], 'mean bus bandwidth of an operation', {
          type: log ? 'log' : 'value',
          min: h.lo === h.hi ? h.lo * 0.9 : h.lo,
          max: h.lo === h.hi ? h.lo * 1.1 || 1 : h.hi,
          nameGap: 26,
          splitLine: { show: false },
          axisLabel: { showMinLabel: false, showMaxLabel: false },
        }),
        yAxis: axis({ type: 'value', minInterval: 1, axisLabel: { formatter: count } }),
        series: [
          {
            type: 'custom',
            data,
            encode: { x: [0, 1], y: 2 },
            renderItem: (params, api) => {
              const a = api.coord([api.value(0), api.value(2)]),
                b = api.coord([api.value(1), 0]);
              const wide = Math.max(2, b[0] - a[0] - 1);
              return {
                type: 'rect',
                shape: {
                  x: h.lo === h.hi ? a[0] - 6 : a[0],
                  y: a[1],
                  width: h.lo === h.hi ? 12 : wide,
                  height: b[1] - a[1],
                },
                style: { fill: c.series[0] },
              };
            },
          },
        ],
      };
    },
    'No operation of this size carries a bus bandwidth.'
  );

  chart(
    'c-points',
    () => {
      const g = chosen(),
        h = g && cells.get(g.cell);
      if (!h || !h.sn.length) return null;
      const c = palette();
      const by = new Map();
      h.comm.forEach((k, i) => {
        if (!by.has(k)) by.set(k, []);
        by.get(k).push([h.sn[i], h.bw[i]]);
      });
      const name = (k) =>
        comms[k]
          ? comms[k].name && comms[k].name !== 'unknown'
            ? `${comms[k].name} ${comms[k].id}`
            : comms[k].id
          : `communicator ${k}`;
      const one = (label, data, color) => ({
        name: label,
        type: 'scatter',
        symbolSize: 5,
        data,
        color,
        itemStyle: { opacity: 0.55 },
      });
      const list = [...by.keys()].sort((a, b) => a - b);
      return {
        grid: {
          left: 36,
          right: 16,
          top: list.length <= MANY_COMMS ? 36 : 16,
          bottom: 40,
          containLabel: true,
        },
        legend: list.length <= MANY_COMMS ? legend() : { show: false },
        dataZoom: [zoom()],
        tooltip: tooltip({
          trigger: 'item',
          formatter: (p) => `${p.seriesName}\nsequence number ${count(p.value[0])}\n${gbs(p.value[1])}`,
        }),
        xAxis: axis({
          type: 'value',
          name: `sequence number${h.stride > 1 ? `, one operation of ${h.stride} shown` : ''}`,
          nameGap: 26,
          splitLine: { show: false },
          scale: true,
          axisLabel: { formatter: count },
        }),
        yAxis: measured('gbs', h.bw, 'mean busbw', { nameGap: 46 }),
        series: list.map((k, i) =>
          one(name(k), by.get(k), list.length <= MANY_COMMS ? c.series[i] : c.series[0])
        ),
      };
    },
    'No operation of this size carries a bus bandwidth.'
  );

  function figures() {
    const g = chosen();
    if (!g) {
      replace(byId('group-figures'), el('p', { class: 'none', text: 'No operation in these logs.' }));
      return;
    }
    const rows = [
      ['Execution time', g.us, duration],
      ['Transfer (shortest rank)', g.transfer_us, duration],
      ['Job view (first start to last stop)', g.job_us, duration],
      ['Bus bandwidth, GB/s', g.busbw, inGbs],
    ];
    const columns = ['n', 'mean', 'stddev', 'min', 'p10', 'p50', 'p90', 'p99', 'max'];
    const head = el(
      'tr',
      {},
      el('th', { scope: 'col', text: '' }),
      ...rows.filter(([, s]) => s.n).map(([name]) => el('th', { scope: 'col', class: 'num', text: name }))
    );
    const body = columns.map((k) =>
      el(
        'tr',
        {},
        el('th', { scope: 'row', text: k }),
        ...rows
          .filter(([, s]) => s.n)
          .map(([, s, show]) =>
            el('td', {
              class: 'num',
              text: k === 'n' ? count(s.n) : `${s.approx && k[0] === 'p' ? '≈ ' : ''}${show(s[k])}`,
            })
          )
      )
    );
    replace(
      byId('group-figures'),
      el(
        'div',
        { class: 'scroll' },
        el('table', { class: 'wrap' }, el('thead', {}, head), el('tbody', {}, ...body))
      ),
      el('p', {
        class: 'note',
        text: [
          `${count(g.operations)} operations`,
          `${count(g.records)} records`,
          g.no_bandwidth ? `${count(g.no_bandwidth)} without bandwidth` : null,
          g.mix ? `algorithm/protocol: ${g.mix}` : null,
        ]
          .filter(Boolean)
          .join(' · '),
      })
    );
  }
  figures();
  select.addEventListener('change', () => {
    figures();
    for (const id of ['c-run', 'c-hist', 'c-points']) redraw(id);
  });
}
