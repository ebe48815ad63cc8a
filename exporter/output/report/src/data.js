// The page's data: tables of {cols, rows} turned into objects, texts of enumerations put in, the heat map
// decoded.

const raw = JSON.parse(document.getElementById('data').textContent);

function objects(table) {
  const { cols, rows } = table;
  const list = rows.map((row) => {
    const o = {};
    for (let i = 0; i < cols.length; i++) o[cols[i]] = row[i];
    return o;
  });
  list.leftOut = table.left_out;
  return list;
}

const STATS = ['n', 'mean', 'stddev', 'min', 'p10', 'p25', 'p50', 'p75', 'p90', 'p99', 'max', 'approx'];
function stats(values) {
  const o = {};
  STATS.forEach((name, i) => {
    o[name] = values[i];
  });
  return o;
}

export const page = raw;
export const groups = objects(raw.groups);
export const cells = new Map(objects(raw.cells).map((c) => [c.cell, c]));
export const series = new Map(objects(raw.series).map((s) => [s.group, s]));
export const comms = objects(raw.comms);
export const hosts = objects(raw.hosts);
export const processes = objects(raw.processes);
export const findings = objects(raw.findings);
export const outliers = objects(raw.outliers);
export const pairs = objects(raw.pairs);
export const tags = objects(raw.tags);
export const devices = objects(raw.devices);
export const slices = {
  comm: objects(raw.by_comm),
  process: objects(raw.by_process),
  host: objects(raw.by_host),
};

export const groupAt = new Map();
for (const g of groups) {
  for (const key of ['us', 'busbw', 'transfer_us', 'job_us']) g[key] = stats(g[key]);
  g.typeName = raw.types[g.type];
  g.timingName = raw.timings[g.timing] || 'not stated';
  groupAt.set(g.index, g);
}
for (const x of tags) x.timingName = raw.timings[x.timing] || 'not stated';
for (const c of cells.values()) c.busbw = stats(c.busbw);
for (const c of [...comms, ...pairs]) c.typeName = raw.types[c.type];
// "rank 5", or "ranks 0-7" of a process that drives several GPUs.
for (const p of processes) p.rankName = p.ranks || `rank ${p.rank}`;
for (const p of processes) p.hostName = hosts[p.host] ? hosts[p.host].name : `host ${p.host}`;

// One byte a cell: 0 nothing, else by own time 128 + 400 x part of a step, by durations 128 + 24
// log2(duration / peers' median).
function decode(text) {
  const bytes = atob(text);
  const out = new Uint8Array(bytes.length);
  for (let i = 0; i < bytes.length; i++) out[i] = bytes.charCodeAt(i);
  return out;
}
export const heat = { ...raw.heat, cells: decode(raw.heat.cells) };
export const ratioOf = (byte) => (byte ? 2 ** ((byte - 128) / 24) : NaN);
export const partOf = (byte) => (byte ? (byte - 128) / 400 : NaN);

// Unix µs where the middle of time bin b lies.
export const binTime = (b, run = 1) =>
  raw.first_us + (Math.min((b + 0.5) * run, raw.n_bins) / (raw.n_bins || 1)) * (raw.last_us - raw.first_us);
