// The axis of the run for charts over time: cells 0..n of equal length, labelled with the time since the
// first record.
import { page } from './data.js';
import { axis } from './charts.js';
import { unitFor } from './format.js';

// n cells of `per` bins of the run each. Tics at 1, 2 or 5 times a power of ten of the time unit.
export function runAxis(n, per, name) {
  const span = page.last_us - page.first_us || 1,
    tics = unitFor('us', [span]),
    unit = tics.size;
  const raw = span / 7 / unit,
    e = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((s) => s * e >= raw) * e * unit;
  return axis({
    type: 'value',
    min: 0,
    max: n,
    interval: (step * page.n_bins) / span / per,
    name,
    nameGap: 26,
    splitLine: { show: false },
    axisLabel: {
      showMaxLabel: false,
      formatter: (v) => (v === 0 ? '0' : `+${tics.withUnit(((v * per) / page.n_bins) * span)}`),
    },
  });
}
