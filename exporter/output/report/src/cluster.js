// What the head's frames say: nodes, GPUs, NICs and jobs with their rates, and the last five minutes. Plain
// data, no elements.
import { known } from './format.js';

const HISTORY_S = 300;
const keyOf = (job) => JSON.stringify([job.job_id, job.attempt, job.uid]);
const compare = new Intl.Collator(undefined, { numeric: true }).compare;
const sum = (...list) => (list.some(known) ? list.reduce((a, v) => a + (known(v) ? v : 0), 0) : null);

export const now = { nodes: [], gpus: [], nics: [], jobs: [], open: [], time: null };
export let history = []; // {time, util, pcie, nvlink, nic, oldest, busbw by job}: as event `points` says

// Over the nodes of a job: rates are those of the head.
const STATES = ['ended', 'logs_only', 'running', 'stuck'];
function merge(jobs, job) {
  const key = keyOf(job),
    all = jobs.get(key) || {
      ...job,
      key,
      hosts: 0,
      processes: 0,
      in_flight: 0,
      stuck: 0,
      verdicts: new Set(),
    };
  for (const k of ['processes', 'in_flight', 'stuck']) all[k] += job[k];
  for (const k of ['operations_s', 'message_gb_s']) all[k] = sum(all.hosts ? all[k] : null, job[k]);
  all.hosts++;
  all.oldest_s = Math.max(all.oldest_s, job.oldest_s);
  all.state = STATES[Math.max(STATES.indexOf(all.state), STATES.indexOf(job.state))];
  if (job.verdict) all.verdicts.add(job.verdict);
  jobs.set(key, all);
}

// frame: event `frame`; clients: of GET /clients, which has those that are gone. Numbers of nodes that are
// not ok are not shown.
export function take(frame, clients) {
  const jobs = new Map(),
    told = new Map(Object.entries(frame.client_data)),
    listed = new Map(clients.map((c) => [c.client_id, c]));
  Object.assign(now, { gpus: [], nics: [], open: [], time: Date.parse(frame.timestamp) / 1000 });
  now.nodes = [...new Set([...listed.keys(), ...told.keys()])].map((id) => ({
    id,
    ...listed.get(id),
    ...told.get(id),
  }));
  for (const n of now.nodes) n.host = n.hostname || n.id;
  now.nodes.sort((a, b) => compare(a.host, b.host));
  for (const n of now.nodes) {
    const ok = n.state === 'ok' && told.has(n.id),
      place = { node: n, host: n.host, state: n.state };
    if (ok) Object.assign(n, n.system_metrics);
    for (const g of n.gpus_metrics || n.gpus || []) {
      now.gpus.push({
        ...place,
        index: g.physical_idx,
        name: g.name,
        ...(ok && {
          util: g.gpu_util,
          memory: g.mem_util,
          pcie_rx: g.dram_bw_gbps_rx,
          pcie_tx: g.dram_bw_gbps_tx,
          nvlink_rx: g.nvlink_bw_gbps_rx,
          nvlink_tx: g.nvlink_bw_gbps_tx,
          power: g.power_w,
          temperature: g.temperature_c,
          pcie: sum(g.dram_bw_gbps_rx, g.dram_bw_gbps_tx),
          nvlink: sum(g.nvlink_bw_gbps_rx, g.nvlink_bw_gbps_tx),
        }),
      });
    }
    for (const x of n.nics || []) {
      const [rx, tx, link] = [x.rx_bytes_s, x.tx_bytes_s, x.link_bytes_s].map((v) =>
        known(v) ? v / 1e9 : null
      );
      now.nics.push({
        ...place,
        name: x.nic,
        ...(ok && { rx, tx, share: link ? Math.max(rx, tx) / link : null, held: x.held }),
      });
    }
    if (!ok) continue;
    for (const job of n.jobs || []) merge(jobs, job);
    for (const o of n.open || []) now.open.push({ host: n.host, ...o });
  }
  now.open.sort((a, b) => b.age_s - a.age_s);
  now.jobs = [...jobs.values()].sort(
    (a, b) => STATES.indexOf(b.state) - STATES.indexOf(a.state) || compare(a.job_id, b.job_id)
  );
  const newest = history.length ? history[history.length - 1].busbw : new Map();
  for (const j of now.jobs) j.busbw = j.hosts === 1 ? j.busbw_gb_s : newest.get(j.key);
}

// list: event `points`, all that the head has of the last minutes, or its newest one; period: of frames.
// Lines end where nothing was heard.
export function points(list, period) {
  if (!list.length) return;
  const end = list[list.length - 1].time;
  history = history.filter((p) => p.time > end - HISTORY_S && p.time < list[0].time);
  const gap =
    history.length && list[0].time - history[history.length - 1].time > 3 * Math.max(1, period)
      ? [{ time: list[0].time - 1e-3, busbw: new Map() }]
      : [];
  history.push(
    ...gap,
    ...list.map((p) => ({ ...p, busbw: new Map(p.jobs.map((j) => [keyOf(j), j.busbw])) }))
  );
}
