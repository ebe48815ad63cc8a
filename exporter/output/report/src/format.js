// Numbers and times as text. null and NaN are an en dash.

const NONE = '–';
export const known = (v) => v !== null && v !== undefined && !Number.isNaN(v);

// Groups of three, as exporter/base/text/amount_text.h has them.
export function count(v) {
  return known(v) ? String(Math.round(v)).replace(/\B(?=(\d{3})+(?!\d))/g, ',') : NONE;
}
// Three or four significant digits without exponent.
export function short(v) {
  if (!known(v)) return NONE;
  const a = Math.abs(v);
  if (a !== 0 && a < 1e-4) return v.toFixed(Math.ceil(2 - Math.log10(a)));
  return a >= 1000
    ? count(v)
    : a >= 100
      ? v.toFixed(0)
      : a >= 10
        ? v.toFixed(1)
        : a >= 1
          ? v.toFixed(2)
          : a === 0
            ? '0'
            : v.toPrecision(3);
}
// One unit for all tics of an axis: that of the largest value, or on a logarithmic axis a smaller one where
// the least would be below a thousandth. kind says what values are: gbs (GB/s), bytesPerS, us (microseconds),
// bytes, or number.
const STEPS = {
  gbs: [
    ['B/s', 1e-9],
    ['kB/s', 1e-6],
    ['MB/s', 1e-3],
    ['GB/s', 1],
    ['TB/s', 1e3],
  ],
  bytesPerS: [
    ['B/s', 1],
    ['kB/s', 1e3],
    ['MB/s', 1e6],
    ['GB/s', 1e9],
    ['TB/s', 1e12],
  ],
  us: [
    ['µs', 1],
    ['ms', 1e3],
    ['s', 1e6],
    ['min', 60e6],
    ['h', 3600e6],
  ],
  bytes: [
    ['B', 1],
    ['kB', 1e3],
    ['MB', 1e6],
    ['GB', 1e9],
    ['TB', 1e12],
  ],
  number: [
    ['', 1],
    ['k', 1e3],
    ['M', 1e6],
    ['G', 1e9],
    ['T', 1e12],
  ],
};
export function unitFor(kind, values, log = false) {
  // decades of minutes have no round numbers
  const steps = kind === 'us' && log ? STEPS.us.slice(0, 3) : STEPS[kind];
  const sizes = values.filter((v) => known(v) && v !== 0).map(Math.abs);
  const most = sizes.reduce((a, b) => Math.max(a, b), 0),
    least = log ? sizes.reduce((a, b) => Math.min(a, b), Infinity) : 0;
  // Minutes and hours begin at two of them, thousands of anything where they have more than four digits.
  const from = (i) => steps[i][1] * (kind === 'us' && i > 2 ? 2 : kind === 'number' ? 10 : 1) * 0.9999;
  let at =
    most > 0
      ? steps.length - 1
      : Math.max(
          0,
          steps.findIndex(([, size]) => size === 1)
        );
  while (most > 0 && at > 0 && most < from(at)) at--;
  while (at > 0 && least > 0 && least < steps[at][1] * 0.00099) at--;
  const [name, size] = steps[at];
  return {
    name,
    size,
    text: (v) => (v === 0 ? '0' : plain(v / size)),
    withUnit: (v) => (v === 0 ? '0' : `${plain(v / size)} ${name}`.trim()),
  };
}
// A time alone, as short as it can be said.
export const durationTick = (us) =>
  duration(us)
    .replace(/(\.\d*?)0+ /, '$1 ')
    .replace('. ', ' ')
    .replace(/^0 µs$/, '0');
// Four digits without trailing zeros, and never an exponent.
function plain(v) {
  const rounded = +v.toPrecision(4),
    a = Math.abs(rounded);
  if (Number.isInteger(rounded)) return count(rounded);
  return a < 1e-4 ? rounded.toFixed(Math.ceil(1 - Math.log10(a))).replace(/0+$/, '') : String(rounded);
}
export const percent = (v) => (known(v) ? `${(v * 100).toFixed(v < 0.0995 ? 1 : 0)} %` : NONE);
// Bandwidths from GB/s, in the unit that leaves a figure before the point.
function rate(v) {
  const step = v === 0 || v >= 0.01 ? 0 : v >= 1e-3 ? 1 : v >= 1e-6 ? 2 : 3;
  return [short(v * 1000 ** step), ['GB/s', 'MB/s', 'kB/s', 'B/s'][step]];
}
export const gbs = (v) => (known(v) ? rate(v).join(' ') : NONE);
// Under a heading that says GB/s: the unit where it is another.
export const inGbs = (v) => (known(v) ? rate(v).join(' ').replace(' GB/s', '') : NONE);
export const times = (v) => (known(v) ? `${v > 0 && v < 0.095 ? +v.toPrecision(1) : v.toFixed(2)}×` : NONE);

// Decimal units, as exporter/base/text/amount_text.h has them; what rounds to 1000 of one is 1 of the next.
const UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB'];
function inUnits(v, below, digits) {
  let e = 0;
  for (; v >= below && e < UNITS.length - 1; e++) v /= 1000;
  return [v.toFixed(e ? digits(v) : 0), UNITS[e]];
}
// The size of a message, with two decimals, so that 1 MiB is not 1 MB.
export const bytes = (v) => (known(v) ? inUnits(v, v < 1000 ? 1000 : 999.995, () => 2).join(' ') : NONE);
// An amount of data, in three digits or fewer.
export const amount = (v) => (known(v) ? inUnits(v, 999.5, (x) => (x < 99.95 ? 1 : 0)).join(' ') : NONE);
// On a logarithmic axis of message sizes, over nine decades: 1 kB, 1 MB, each in its own unit.
export const bytesTick = (v) => {
  const [text, unit] = inUnits(v, v < 1000 ? 1000 : 999.95, () => 1);
  return `${text.replace(/\.0$/, '')} ${unit}`;
};
export function duration(us) {
  if (!known(us)) return NONE;
  // What rounds to 1000 of a unit is 1 of the next.
  if (us < 999.95) return `${short(us)} µs`;
  if (us < 999950) return `${short(us / 1e3)} ms`;
  if (us < 120e6) return `${short(us / 1e6)} s`;
  return us < 7200e6 ? `${short(us / 60e6)} min` : `${short(us / 3600e6)} h`;
}
export const iso = (us) =>
  us ? `${new Date(us / 1000).toISOString().slice(0, 19).replace('T', ' ')} UTC` : NONE;
// RFC 3339 with microseconds, which Date does not carry.
export function rfc3339(us) {
  const s = Math.floor(us / 1e6);
  return `${new Date(s * 1000).toISOString().slice(0, 19)}.${String(us - s * 1e6).padStart(6, '0')}Z`;
}
export const since = (us) => `+${duration(us)}`;
export const operation = (g) => `${g.func} ${bytes(g.bytes)}`;
