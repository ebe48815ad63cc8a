// Every table of the summary: tabs, filters, CSV.
import { page, groups, groupAt, comms, hosts, processes, slices, pairs, tags } from './data.js';
import { byId, el, replace, options } from './dom.js';
import { table } from './table.js';
import { bytes, count, duration, inGbs, percent, times } from './format.js';

const n = (title, key, show = count, more = {}) => ({
  title,
  csv: more.csv || key,
  num: true,
  get: typeof key === 'function' ? key : (r) => r[key],
  show: (r) => show((typeof key === 'function' ? key : (x) => x[key])(r)),
  ...more,
});
const t = (title, get, more = {}) => ({ title, get, ...more });
const us = (v) => duration(v),
  ns = (v) => duration(v === null ? null : v / 1e3);

const peers = [
  n('Mean against peers', 'relative', times, {
    help: "mean of duration / peers' median; below 1 it arrives late",
  }),
  n('Compared', 'compared'),
  n('Shortest in', 'shortest', count, { help: 'operations in which all others waited for it' }),
  n('Late in', 'late', count, { help: "operations with less than 0.8 of the peers' median" }),
  n('Time lost by a peer', 'late_ns', ns),
  n('GB/s against median', 'busbw_relative', times),
];
const bus = { help: 'bus bandwidth' };
const stat = (key, unit, show, more) =>
  ['mean', 'stddev', 'min', 'p50', 'p90', 'p99', 'max'].map((k) =>
    n(`${unit} ${k}`, (g) => g[key][k], show, { ...more, csv: `${key}_${k}` })
  );
const sliceColumns = (title, name) => [
  t(title, name, { text: true }),
  t('Function', (r) => r.func, { text: true }),
  n('Size', 'bytes', (v) => bytes(v)),
  t('Type', (r) => r.typeName),
  t('Timing', (r) => r.timingName),
  n('Records', 'records'),
  n('Time mean', 'us_mean', us),
  n('Time p50', 'us_p50', us),
  n('Time p99', 'us_p99', us),
  n('GB/s mean', 'bw_mean', inGbs, bus),
  n('GB/s p50', 'bw_p50', inGbs, bus),
  n('GB/s min', 'bw_min', inGbs, bus),
];
function sliceRows(kind) {
  const rows = slices[kind]
    .filter((s) => groupAt.has(s.group))
    .map((s) => {
      const g = groupAt.get(s.group);
      return {
        ...s,
        func: g.func,
        bytes: g.bytes,
        typeName: g.typeName,
        timingName: g.timingName,
        type: g.type,
        timing: g.timing,
      };
    });
  rows.leftOut = slices[kind].leftOut + slices[kind].length - rows.length;
  return rows;
}
const rankName = (i) => (processes[i] ? `${processes[i].hostName} ${processes[i].rankName}` : `process ${i}`);
const commName = (i) =>
  comms[i] ? [comms[i].name, comms[i].id].filter(Boolean).join(' ') : `communicator ${i}`;

const TABLES = [
  {
    name: 'Groups',
    file: 'groups.csv',
    rows: () => groups,
    sort: ['share', true],
    columns: [
      t('Function', (g) => g.func, { text: true }),
      n('Size', 'bytes', (v) => bytes(v)),
      t('Type', (g) => g.typeName),
      t('Kind', (g) => (g.kind ? 'p2p' : 'collective')),
      t('Timing', (g) => g.timingName),
      n('Share of time', 'share', percent),
      n('Records', 'records'),
      n('Operations', 'operations'),
      ...stat('us', 'Time', us),
      ...stat('busbw', 'GB/s', inGbs, bus),
      n('Transfer p50', (g) => g.transfer_us.p50, us, { csv: 'transfer_us_p50' }),
      n('Job view p50', (g) => g.job_us.p50, us, { csv: 'job_us_p50' }),
      n('% of peak', 'of_best', percent),
      t('Algorithm/protocol', (g) => g.mix, { text: true }),
    ],
  },
  {
    name: 'Communicators',
    file: 'communicators.csv',
    rows: () => comms,
    sort: ['transfer_ns', true],
    columns: [
      t('Communicator', (c) => c.id, { show: (c) => el('span', { class: 'mono', text: c.id }) }),
      t('Name', (c) => c.name, { text: true }),
      t('Type', (c) => c.typeName),
      t('Role', (c) => c.role),
      n('Ranks', 'n_ranks'),
      n('Ranks seen', 'ranks_seen', count),
      n('Nodes', 'nnodes'),
      n('Records', 'records'),
      n('Operations', 'operations'),
      n('With ranks missing', 'partial'),
      n('Transfer', 'transfer_ns', ns),
      n('Waiting', 'waiting_ns', ns),
      n('Outside NCCL', 'outside_ns', ns),
      n('First to last', 'span_ns', ns),
    ],
  },
  {
    name: 'Lateness of ranks',
    file: 'ranks.csv',
    rows: () => processes,
    sort: ['late_ns', true],
    columns: [
      t('Host', (p) => p.hostName, { text: true }),
      n(
        'GPU',
        (p) => (p.gpu < 0 ? null : p.gpu),
        (v) => (v === null ? null : String(v)),
        { csv: 'gpu' }
      ),
      n('Rank', 'rank', String, { show: (p) => p.rankName.replace(/ranks? /, '') }),
      t('Ranks of the process', (p) => p.rankName, { csv: 'ranks', hidden: true }),
      n('Pid', 'pid', String),
      n('Records', 'records'),
      n('Time in kernels', 'exec_ns', ns),
      ...peers,
    ],
  },
  {
    name: 'Lateness of hosts',
    file: 'hosts.csv',
    rows: () => hosts,
    sort: ['late_ns', true],
    columns: [
      t('Host', (h) => h.name, { text: true }),
      n('Processes', 'processes'),
      n('Records', 'records'),
      n('Time in kernels', 'exec_ns', ns),
      ...peers,
    ],
  },
  {
    name: 'Sizes by communicator',
    file: 'by_communicator.csv',
    rows: () => sliceRows('comm'),
    columns: sliceColumns('Communicator', (r) => commName(r.of)),
  },
  {
    name: 'Sizes by rank',
    file: 'by_rank.csv',
    rows: () => sliceRows('process'),
    columns: sliceColumns('Rank', (r) => rankName(r.of)),
  },
  {
    name: 'Sizes by host',
    file: 'by_host.csv',
    rows: () => sliceRows('host'),
    columns: sliceColumns('Host', (r) => (hosts[r.of] ? hosts[r.of].name : `host ${r.of}`)),
  },
  {
    name: 'P2P pairs',
    file: 'p2p_pairs.csv',
    rows: () => pairs,
    sort: ['exec_ns', true],
    columns: [
      t('Communicator', (p) => p.comm_id, { show: (p) => el('span', { class: 'mono', text: p.comm_id }) }),
      t('Type', (p) => p.typeName),
      n('Size', 'bytes', (v) => bytes(v)),
      n('From rank', 'from', String),
      t('on', (p) => p.from_host, { text: true, csv: 'from_host' }),
      n('To rank', 'to', String),
      t('on', (p) => p.to_host, { text: true, csv: 'to_host' }),
      n('Sends', 'sends'),
      n('Receives', 'recvs'),
      n('Matched', 'matched', count, { help: 'messages with a record on both sides' }),
      n('Time in kernels', 'exec_ns', ns),
      n('Send p50', 'send_p50', us),
      n('Receive p50', 'recv_p50', us),
      n('Transfer p50', 'transfer_p50', us, { help: 'the shorter side of each message' }),
      n('GB/s', 'bandwidth', inGbs, { help: 'size / transfer p50' }),
      n('Sender waited', 'sender_waited_us', us),
      n('Receiver waited', 'receiver_waited_us', us),
    ],
  },
  {
    name: 'Tags',
    file: 'tags.csv',
    rows: () => tags,
    sort: ['share', true],
    columns: [
      t('Tag', (x) => x.tag, { csv: 'tag' }),
      t('Name', (x) => x.name, { text: true }),
      t('Timing', (x) => x.timingName),
      n('Share of time', 'share', percent),
      n('Operations', 'operations'),
      n('Records', 'records'),
      n('Bytes', 'bytes', (v) => bytes(v)),
      n('Time in kernels', 'exec_ns', ns),
      n('GB/s mean', 'busbw', inGbs, bus),
    ],
  },
].filter((spec) => (spec.name !== 'P2P pairs' || pairs.length) && (spec.name !== 'Tags' || tags.length));

export function allTables() {
  let current = 0;
  const filter = { text: '', type: '', func: '', timing: '' };

  const tabs = TABLES.map((spec, i) =>
    el('button', {
      type: 'button',
      role: 'tab',
      id: `tab-${i}`,
      'aria-controls': 'table',
      text: spec.name,
      onclick: () => {
        current = i;
        show(true);
      },
      onkeydown: (e) => {
        const step = e.key === 'ArrowRight' ? 1 : e.key === 'ArrowLeft' ? TABLES.length - 1 : 0;
        if (!step) return;
        e.preventDefault();
        current = (current + step) % TABLES.length;
        show(true);
        tabs[current].focus();
      },
    })
  );
  replace(byId('table-tabs'), ...tabs);
  byId('table').setAttribute('role', 'tabpanel');

  function choice(key, label, values) {
    const select = el('select', {
      id: `filter-${key}`,
      onchange: () => {
        filter[key] = select.value;
        show(false);
      },
    });
    options(select, [['', 'all'], ...values.map((v) => [v, v])], filter[key]);
    return el('label', { text: `${label} ` }, select);
  }
  const distinct = (list) => [...new Set(list)].sort();

  function show(fresh) {
    const spec = TABLES[current];
    const rows = spec.rows();
    tabs.forEach((tab, i) => {
      tab.setAttribute('aria-selected', String(i === current));
      tab.tabIndex = i === current ? 0 : -1;
    });
    byId('table').setAttribute('aria-labelledby', `tab-${current}`);
    const has = (key) => rows.some((r) => r[key] !== undefined);
    if (fresh) {
      Object.assign(filter, { text: '', type: '', func: '', timing: '' });
      const text = el('input', {
        type: 'search',
        id: 'filter-text',
        placeholder: 'words, all of them',
        oninput: () => {
          filter.text = text.value;
          show(false);
        },
      });
      replace(
        byId('table-filters'),
        el('label', { text: 'Filter ' }, text),
        has('typeName') ? choice('type', 'Type', distinct(rows.map((r) => r.typeName))) : null,
        has('func') ? choice('func', 'Function', distinct(rows.map((r) => r.func))) : null,
        has('timingName') ? choice('timing', 'Timing', distinct(rows.map((r) => r.timingName))) : null
      );
    }
    const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
    const matching = rows.filter((r) => {
      if (filter.type && r.typeName !== filter.type) return false;
      if (filter.func && r.func !== filter.func) return false;
      if (filter.timing && r.timingName !== filter.timing) return false;
      if (!words.length) return true;
      const all = spec.columns
        .map((c) => (c.num ? `${c.get(r)} ${c.show(r)}` : c.get(r)))
        .join(' ')
        .toLowerCase();
      return words.every((w) => all.includes(w));
    });
    matching.leftOut = rows.leftOut;
    table(byId('table'), spec.columns, matching, {
      file: spec.file,
      sort: spec.sort,
      caption: `${spec.name}: ${count(matching.length)} of ${count(rows.length)}`,
    });
  }
  show(true);
}
