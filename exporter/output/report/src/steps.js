// What a step's time went into, over the run: parts one upon the other, and what the findings cover, shaded.
import { page, findings } from './data.js';
import { announce, byId } from './dom.js';
import { axis, chart, legend, measured, palette, tooltip, zoom } from './charts.js';
import { count, duration, since } from './format.js';

// As in the bins, behind their start. Hidden communication runs beside the computing: a line, not a part.
const PARTS = [
  ['computing', 2],
  ['transfers', 0],
  ['waiting', null],
  ['hidden', 3],
  ['pauses', 1],
];

export function stepsOverRun() {
  const steps = page.steps;
  if (!steps) {
    byId('step-part').remove();
    return;
  }
  const { bins, bin_steps: per, n_steps: n } = steps;
  const last = (i) => Math.min((i + 1) * per, n) - 1;
  // What lasts for a few steps only must not press all the others flat.
  const sums = bins.map((b) => b[1] + b[2] + b[3] + b[5]).sort((a, b) => a - b),
    cap = 2 * sums[Math.floor((sums.length - 1) * 0.98)];
  const cut = cap > 0 && sums[sums.length - 1] > cap;
  byId('step-note').textContent =
    `${page.steps_text}. Mean over the ranks of each step: computing between operations, exposed ` +
    `transfers, waiting in operations for others, pauses; hidden communication runs beside the ` +
    `computing.` +
    (per > 1 ? ` One point is ${count(per)} steps.` : '') +
    (findings.some((f) => f.from_step >= 0 || f.to_step >= 0)
      ? ' Shaded: steps that a finding covers, with its number.'
      : '') +
    (cut
      ? ` Above ${duration(cap)} the chart is cut off; the values of a step stand beside the pointer.`
      : '');
  const tell = (i) => [
    `${per > 1 ? `steps ${count(i * per)} to ${count(last(i))}` : `step ${count(i)}`}` +
      `${bins[i][0] ? `, ${since(bins[i][0] - page.first_us)}` : ''}`,
    ...PARTS.map(([name], k) => `${name}  ${duration(bins[i][k + 1])}`),
  ];

  let shown = null,
    at = -1;
  chart(
    'c-steps',
    () => {
      const c = palette();
      const areas = findings.map((f, i) => [f, i + 1]).filter(([f]) => f.from_step >= 0 || f.to_step >= 0);
      return {
        grid: { left: 12, right: 24, top: 36, bottom: 40, containLabel: true },
        legend: legend(),
        tooltip: tooltip({ trigger: 'axis', formatter: (p) => tell(p[0].dataIndex).join('\n') }),
        dataZoom: [zoom()],
        xAxis: axis({
          type: 'value',
          min: 0,
          max: Math.max(n - 1, 1),
          name: 'step',
          nameGap: 26,
          splitLine: { show: false },
          axisLabel: { formatter: count },
        }),
        yAxis: measured('us', [cut ? cap : sums[sums.length - 1]], '', {
          type: 'value',
          min: 0,
          max: cut ? cap : null,
          axisLabel: { showMaxLabel: !cut },
        }),
        series: PARTS.map(([name, color], k) => {
          const of = color === null ? c.waiting : c.series[color],
            part = name !== 'hidden';
          return {
            name,
            type: 'line',
            color: of,
            stack: part ? 'step' : null,
            symbol: 'none',
            lineStyle: { width: part ? 0.5 : 2, type: part ? 'solid' : 'dashed' },
            areaStyle: part ? { opacity: 0.85 } : null,
            z: part ? 2 : 4,
            data: bins.map((b, i) => [i * per, b[0] ? b[k + 1] : null]),
            markArea: k
              ? null
              : {
                  silent: true,
                  itemStyle: { color: c.text, opacity: 0.14 },
                  label: { color: c.text, position: 'insideTop' },
                  z: 5,
                  data: areas.map(([f, i]) => [
                    { name: String(i), xAxis: Math.max(f.from_step, 0) },
                    { xAxis: f.to_step < 0 ? n - 1 : f.to_step },
                  ]),
                },
          };
        }),
      };
    },
    'No step was seen.',
    (instance) => {
      shown = instance;
    }
  );

  byId('c-steps').addEventListener('keydown', (e) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[e.key];
    if (!by || !shown) return;
    e.preventDefault();
    at = Math.max(0, Math.min(bins.length - 1, at + by));
    shown.dispatchAction({ type: 'showTip', seriesIndex: 0, dataIndex: at });
    announce(tell(at).join(', '));
  });
}
