// The operations that cost the most, each with a command that shows it with all its ranks.
import { page, comms, outliers } from './data.js';
import { byId, el, copy as copyText, replace } from './dom.js';
import { table } from './table.js';
import { bytes, count, duration, rfc3339, iso, times, since, known } from './format.js';

// As one word of a shell, whatever is in it.
export const word = (text) =>
  /^[\w./:=+,@%-]+$/.test(text) ? text : `'${String(text).replace(/'/g, "'\\''")}'`;

export function command(o) {
  const parts = ['nccl-inspector', 'summary'];
  for (const path of page.input_paths.length ? page.input_paths : ['LOGS']) parts.push('--input_dir', path);
  parts.push('--comm', o.comm_id, '--coll', o.func);
  // Each rank counts its own sends and receives: their times alone say which.
  if (o.func !== 'Send' && o.func !== 'Recv') parts.push('--sn', o.sn);
  if (page.start_times && o.time_us > 0) {
    // Ranks start an operation at different times; its slowest record and a little more on both sides.
    const around = Math.ceil(Math.max(o.us, o.peers_us)) + 1000;
    parts.push('--since', rfc3339(o.time_us - around), '--until', rfc3339(o.time_us + around));
  }
  parts.push('--output_dir', `outlier-${o.func}-${o.sn}`);
  return parts.map((p) => word(String(p))).join(' ');
}

export const copyButton = (text) =>
  el('button', {
    type: 'button',
    class: 'copy',
    text: 'Copy command',
    title: text,
    'data-command': text,
    onclick: (e) => {
      copyText(text);
      const button = e.currentTarget;
      button.textContent = 'Copied';
      setTimeout(() => {
        button.textContent = 'Copy command';
      }, 1500);
    },
  });

// A name that others do not have says more than a hash.
function commName(o) {
  const name = comms[o.comm] && comms[o.comm].id === o.comm_id ? comms[o.comm].name : null;
  return name && name !== 'unknown' && comms.filter((c) => c.name === name).length === 1 ? name : null;
}

const KIND = ['late', 'slow'];

// Who began it: "rank 3 on node-0, paused 20.1 ms".
function began(o) {
  if (!o.began_host) return null;
  const who = known(o.began) ? `rank ${o.began} on ${o.began_host}` : `host ${o.began_host}`;
  const paused = known(o.began_us) ? `, paused ${duration(o.began_us)}` : '';
  return `${who}${paused}${o.more ? `, and ${o.more} more times` : ''}`;
}

// Where operations were put down to incidents.
const incidents = () =>
  outliers.some((o) => o.operations)
    ? [
        {
          title: 'Began',
          csv: 'began',
          get: (o) => began(o),
          text: true,
          help: 'who paused before the others had to wait; empty: not known',
        },
        { title: 'Step', csv: 'step', num: true, get: (o) => (o.began_step < 0 ? null : o.began_step) },
        {
          title: 'Operations',
          csv: 'operations',
          help: 'that waited for it, the one on the right among them',
          num: true,
          get: (o) => o.operations,
        },
        { title: 'Ranks', csv: 'ranks', help: 'that waited in them', num: true, get: (o) => o.ranks },
        {
          title: 'Stands out',
          csv: 'finding',
          help: 'number of the finding that it belongs to',
          num: true,
          get: (o) => (o.finding < 0 ? null : o.finding + 1),
        },
      ]
    : [];

export function outlierTable() {
  byId('outlier-note').textContent = outliers.length
    ? 'late: this rank came so late that its peers waited for it. slow: the whole operation took much ' +
      'longer than usual. Largest loss first.' +
      (outliers.some((o) => o.operations)
        ? ' One row for each incident, with who began it; the operation is an example.'
        : '')
    : '';
  if (!outliers.length) {
    replace(byId('outliers'), el('p', { class: 'none', text: 'No operation stands out.' }));
    return;
  }
  table(
    byId('outliers'),
    [
      { title: 'Kind', get: (o) => KIND[o.kind] },
      ...incidents(),
      { title: 'Host', get: (o) => o.host, text: true },
      {
        title: 'Rank',
        csv: 'rank',
        help: 'global rank',
        num: true,
        get: (o) => o.global_rank,
        show: (o) => (known(o.global_rank) ? String(o.global_rank) : null),
      },
      {
        title: 'in comm.',
        csv: 'comm_rank',
        help: 'rank in the communicator',
        num: true,
        get: (o) => o.rank,
        show: (o) => String(o.rank),
      },
      { title: 'Pid', num: true, get: (o) => o.pid, hidden: true },
      {
        title: 'Communicator',
        get: (o) => o.comm_id,
        show: (o) =>
          el('span', { class: commName(o) ? '' : 'mono', title: o.comm_id, text: commName(o) || o.comm_id }),
      },
      {
        title: 'Operation',
        csv: 'function',
        get: (o) => o.func,
        show: (o) => `${o.func} ${bytes(o.bytes)}`,
        text: true,
      },
      { title: 'Bytes', num: true, get: (o) => o.bytes, show: (o) => count(o.bytes), hidden: true },
      {
        title: 'Seq no',
        csv: 'sn',
        help: 'sequence number',
        num: true,
        get: (o) => o.sn,
        show: (o) => String(o.sn),
      },
      {
        title: 'When',
        csv: 'time_us',
        num: true,
        get: (o) => o.time_us,
        show: (o) => el('span', { title: iso(o.time_us), text: since(o.time_us - page.first_us) }),
      },
      { title: 'Took', csv: 'us', num: true, get: (o) => o.us, show: (o) => duration(o.us) },
      {
        title: 'Usual',
        csv: 'usual_us',
        num: true,
        get: (o) => o.peers_us,
        show: (o) => `${duration(o.peers_us)} (${times(o.us / o.peers_us)})`,
        help: "late: the peers' median in the same operation; slow: the median transfer time of the group",
      },
      { title: 'Lost', csv: 'lost_us', num: true, get: (o) => o.lost_us, show: (o) => duration(o.lost_us) },
      { title: 'Look closer', action: true, get: () => '', show: (o) => copyButton(command(o)) },
    ],
    outliers,
    { page: 10, file: 'outliers.csv' }
  );
}
