// Numbers and times as text. null and NaN are an en dash.

const NONE = '–';
export const known = (v) => v !== null && v !== undefined && !Number.isNaN(v);

// Groups of three, parted by a narrow space.
export function count(v) {
  return known(v) ? String(Math.round(v)).replace(/\B(?=(\d{3})+(?!\d))/g, ' ') : NONE;
}
// Three or four significant digits without exponent.
export function short(v) {
  if (!known(v)) return NONE;
  const a = Math.abs(v);
  if (a !== 0 && (a < 1e-4 || a >= 1e7)) return v.toExponential(2);
  return a >= 1000 ? count(v) : a >= 100 ? v.toFixed(0) : a >= 10 ? v.toFixed(1) : a >= 1 ? v.toFixed(2) : a === 0 ? '0' : v.toPrecision(3);
}
// On an axis: no trailing zeros.
export const tick = (v) => (known(v) ? (Math.abs(v) >= 1e6 || (v !== 0 && Math.abs(v) < 1e-4) ? v.toExponential() : count2(+v.toPrecision(4))) : NONE);
const count2 = (v) => (Number.isInteger(v) ? count(v) : String(v));
export const durationTick = (us) => duration(us).replace(/(\.\d*?)0+ /, '$1 ').replace('. ', ' ').replace(/^0 µs$/, '0');
export const percent = (v) => (known(v) ? `${(v * 100).toFixed(v < 0.0995 ? 1 : 0)} %` : NONE);
export const gbs = (v) => (known(v) ? `${short(v)} GB/s` : NONE);
export const times = (v) => (known(v) ? `${v.toFixed(2)}×` : NONE);

// Decimal units, as in the CSV files and folders.
const UNITS = ['B', 'KB', 'MB', 'GB', 'TB', 'PB', 'EB'];
export function bytes(v, digits = 2) {
  if (!known(v)) return NONE;
  if (v < 1) return '0 B';
  const e = Math.min(UNITS.length - 1, Math.floor(Math.log10(v) / 3 + 1e-12));
  const text = (v / 1000 ** e).toFixed(e ? digits : 0);
  return `${digits < 2 ? text.replace(/\.0+$/, '') : text} ${UNITS[e]}`;
}
export function duration(us) {
  if (!known(us)) return NONE;
  // What rounds to 1000 of a unit is 1 of the next.
  if (us < 999.95) return `${short(us)} µs`;
  if (us < 999950) return `${short(us / 1e3)} ms`;
  if (us < 120e6) return `${short(us / 1e6)} s`;
  return us < 7200e6 ? `${short(us / 60e6)} min` : `${short(us / 3600e6)} h`;
}
export const iso = (us) => (us ? `${new Date(us / 1000).toISOString().slice(0, 19).replace('T', ' ')} UTC` : NONE);
// RFC 3339 with microseconds, which Date does not carry.
export function rfc3339(us) {
  const s = Math.floor(us / 1e6);
  return `${new Date(s * 1000).toISOString().slice(0, 19)}.${String(us - s * 1e6).padStart(6, '0')}Z`;
}
export const since = (us) => `+${duration(us)}`;
export const operation = (g) => `${g.func} ${bytes(g.bytes)}`;
