"""What the commands say, as types. Made by scripts/schemas.py from schemas/schemas.txt, like the JSON Schemas."""

from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional, TypedDict, Union


class _CheckAlways(TypedDict):
    schema_version: str
    verdict: Literal["COMPLETE", "INCOMPLETE"]
    files: int
    file_bytes: int
    text_bytes: int
    processes: int
    lines: int
    operations: int
    control_lines: int
    proxy_lines: int
    bad_lines: int
    unknown_keys: int
    notes_in_logs: int
    bad_lines_by: Dict[str, int]
    operations_by: Dict[str, int]
    events_by: Dict[str, int]
    dropped_by: Dict[str, int]
    filtered_by: Dict[str, int]
    timing_fallback_by: Dict[str, int]
    strays: Dict[str, int]
    unknown_kinds: Dict[str, int]
    bad_line_samples: List[str]
    problems: List[Problem]
    notes: List[Problem]
    communicators: List[CheckedCommunicator]


class _CheckSometimes(TypedDict, total=False):
    counters: List[Series]
    clocks: Dict[str, Any]


class Check(_CheckAlways, _CheckSometimes):
    pass


class _SummaryAlways(TypedDict):
    schema_version: str
    complete: bool
    job: Job
    first_us: int
    last_us: int
    time_from: Literal["start", "dump"]
    records: int
    groups_without_slices: int
    operations: Optional[int]
    clocks_disagree: Optional[int]
    late_share_median: Optional[float]
    input: Input
    groups: List[Group]
    communicators: List[Communicator]
    ranks: List[Rank]
    hosts: List[Host]
    p2p_pairs: List[P2pPair]
    p2p_pair_records_left_out: int
    findings_left_out: int
    findings: List[Finding]
    findings_by: Literal["own_time", "durations"]
    outliers: List[Outlier]


class _SummarySometimes(TypedDict, total=False):
    hang: HangInShort
    clocks: Dict[str, Any]
    approximate: bool
    fused_calls_counted_once: int
    tags: List[Tag]
    causes_not_judged: int
    findings_by_durations_since: str
    steps: Steps
    run: Run
    counter_samples: int
    counters: List[Device]
    sent: List[Sent]


class Summary(_SummaryAlways, _SummarySometimes):
    pass


class Counters(TypedDict):
    schema_version: str
    verdict: str
    complete: bool
    seconds: Optional[float]
    before: Sweep
    after: Sweep
    findings: List[CounterFinding]
    unread: List[Unread]
    total_non_zero: int
    non_zero_per_iface: Dict[str, int]
    top20_per_iface: Dict[str, List[TopCounter]]
    important_metrics: Dict[str, Important]
    entities: List[Entity]


class Problem(TypedDict):
    code: str
    text: str
    count: int
    places: int
    where: List[str]


class CheckedCommunicator(TypedDict):
    hash: str
    name: Optional[str]
    n_ranks: int
    ranks_seen: int
    coll_records: int
    p2p_records: int
    filtered: int
    dropped: int
    incomplete: int
    in_flight: int
    late: int
    missing: int
    doubles: int
    ranks_without_final_line: int


class Series(TypedDict):
    file: str
    host: str
    samples: int
    sweeps: int
    missed: int
    counters: int
    interval_ns: int


class _JobAlways(TypedDict):
    id: Optional[str]
    exe: Optional[str]
    formats: Optional[str]
    producers: Optional[str]


class _JobSometimes(TypedDict, total=False):
    world_size: int
    nccl_version: int


class Job(_JobAlways, _JobSometimes):
    pass


class _InputAlways(TypedDict):
    files: int
    files_failed: int
    files_empty: int
    files_cut: int
    files_damaged: int
    bytes: int
    text_bytes: int
    lines: int
    records: int
    filtered_out: int
    control_lines: int
    proxy_lines: int
    unknown_lines: int
    bad_lines: int
    orphans: int
    duplicates: Optional[int]
    bad_by_reason: Dict[str, int]
    out_of_range_by: Dict[str, int]
    losses_by_cause: Dict[str, int]
    problems_by: Dict[str, int]
    gaps: int
    untold: int
    out_of_range: int
    no_bandwidth: int
    stated_losses: int
    missing_ranks: int
    missing_hosts: int
    left_out_by_settings: int
    trouble: List[str]
    notes: List[str]
    bad_lines_at: List[str]


class _InputSometimes(TypedDict, total=False):
    operations_in_rollups: int
    operations_not_in_rollups: int
    operations_without_record: int


class Input(_InputAlways, _InputSometimes):
    pass


class Group(TypedDict):
    comm_type: Literal["single-rank", "nvlink-only", "hca-only", "mixed", "unknown"]
    kind: Literal["coll", "p2p"]
    func: str
    msg_size_bytes: int
    records: int
    no_bandwidth: int
    operations: Optional[int]
    timing_source: str
    time_share: Optional[float]
    of_best: Optional[float]
    exec_time_us: Stats
    busbw_gbs: Stats
    transfer_time_us: Stats
    job_time_us: Stats
    operation_busbw_gbs: Stats
    algo_proto: List[AlgoProto]


class Communicator(TypedDict):
    id: str
    comm_type: str
    comm_name: Optional[str]
    n_ranks: int
    nnodes: int
    first_us: int
    last_us: int
    ranks_seen: int
    hosts_seen: int
    records: int
    operations: Optional[int]
    partial_operations: Optional[int]
    transfer_us: Optional[float]
    waiting_us: Optional[float]
    outside_us: Optional[float]
    span_us: Optional[float]
    role: Optional[Literal["tp", "dp", "pp", "ep", "world"]]


class _RankAlways(TypedDict):
    hostname: Optional[str]
    file: Optional[str]
    pid: int
    rank: int
    rank_stated: bool
    records: int
    compared: Optional[int]
    shortest: Optional[int]
    late: Optional[int]
    exec_time_us: Optional[float]
    late_us: Optional[float]
    relative: Optional[float]
    busbw_relative: Optional[float]


class _RankSometimes(TypedDict, total=False):
    ranks_in_process: int
    ranks: str


class Rank(_RankAlways, _RankSometimes):
    pass


class Host(TypedDict):
    hostname: str
    ranks: int
    records: int
    compared: Optional[int]
    shortest: Optional[int]
    late: Optional[int]
    exec_time_us: Optional[float]
    late_us: Optional[float]
    relative: Optional[float]
    busbw_relative: Optional[float]


class P2pPair(TypedDict):
    id: str
    comm_type: str
    msg_size_bytes: int
    sends: int
    recvs: int
    matched: int
    sender: P2pSide
    receiver: P2pSide
    bandwidth_gbs: Optional[float]
    sender_waited_us: Optional[float]
    receiver_waited_us: Optional[float]
    send_time_us: Stats
    recv_time_us: Stats
    transfer_time_us: Stats


_FindingAlways = TypedDict(
    "_FindingAlways",
    {
        "kind": "str",
        "level": "str",
        "class": "str",
        "text": "str",
        "lost_us": "Optional[float]",
    },
)


class _FindingSometimes(TypedDict, total=False):
    hostname: str
    id: str
    told_by: str
    evidence: str
    next: str
    ranks_in_process: str
    pid: int
    gpu: int
    rank: Optional[int]
    rank_stated: bool
    late_share: Optional[float]
    cost_s: Optional[float]
    cost_low_s: Optional[float]
    cost_high_s: Optional[float]
    cost_percent: Optional[float]
    ratio: Optional[float]
    transfer_ratio: Optional[float]
    busbw_ratio: Optional[float]
    operations: int
    alike: int
    times: int
    communicators_alike: int
    period_steps: int
    run: int
    length_s: float
    share_of_steps: float
    moments: List[Moment]
    ranks: List[int]
    hosts: List[str]
    onset_step: Optional[int]
    end_step: Optional[int]


class Finding(_FindingAlways, _FindingSometimes):
    pass


class _OutlierAlways(TypedDict):
    kind: Literal["late", "slow"]
    comm_type: str
    func: str
    id: str
    hostname: str
    msg_size_bytes: int
    sn: int
    pid: int
    rank: int
    time_us: int
    global_rank: Optional[int]
    global_rank_stated: bool
    exec_time_us: Optional[float]
    peers_us: Optional[float]
    lost_us: Optional[float]


class _OutlierSometimes(TypedDict, total=False):
    incident: int
    operations: int
    ranks_waiting: int
    more: int
    most_us: Optional[float]
    total_us: Optional[float]
    began: Optional[Began]
    finding: Optional[int]


class Outlier(_OutlierAlways, _OutlierSometimes):
    pass


class HangInShort(TypedDict):
    verdict: str
    sentence: str


class Tag(TypedDict):
    tag: int
    operations: int
    records: int
    no_bandwidth: int
    sum_bytes: int
    name: Optional[str]
    timing_source: str
    exec_time_us: float
    time_share: float
    busbw_gbs_mean: Optional[float]


class Steps(TypedDict):
    mark: str
    bin_steps: int
    n_steps: int
    us_p10: Optional[float]
    us_p50: Optional[float]
    us_p90: Optional[float]
    bins: List[List[Optional[float]]]


class Run(TypedDict):
    run_s: Optional[float]
    without_findings_s: Optional[float]
    computing_s: Optional[float]
    pauses_s: Optional[float]
    transfer_s: Optional[float]
    replayed_share: Optional[float]


class Device(TypedDict):
    hostname: str
    source: str
    device: str
    whose: str
    about: Optional[str]
    ranks: List[int]
    link_bytes_per_s: Optional[float]
    seconds_with: Optional[float]
    seconds_without: Optional[float]
    counters: List[Beside]


class Sent(TypedDict):
    hostname: str
    nccl_bytes: Optional[float]
    nic_bytes: Optional[float]
    nic_bytes_at_least: Optional[float]
    nic_bytes_at_most: Optional[float]


class Sweep(TypedDict):
    path: Optional[str]
    input_path: Optional[str]
    started_at: Optional[str]
    finished_at: Optional[str]
    duration_s: Optional[float]


class CounterFinding(TypedDict):
    level: Literal["info", "warning", "critical"]
    id: str
    entity: str
    text: str
    advice: str
    counter: Optional[str]
    delta: int
    rate: Optional[float]
    share: Optional[float]


class Unread(TypedDict):
    sweep: Optional[Literal["before", "after"]]
    path: str
    why: str
    left_out: bool


class TopCounter(TypedDict):
    iface: int
    metric_id: int
    metric_name: str
    diff: int


class Important(TypedDict):
    metric_name: str
    diffs: Dict[str, Optional[int]]


class _EntityAlways(TypedDict):
    source: str
    name: str
    link: Optional[str]
    pci: Optional[str]
    about: Optional[str]
    warning: Optional[str]
    kind: Optional[str]
    link_state: Optional[Literal["up", "down", "off"]]
    link_bytes_per_s: Optional[float]
    seconds: Optional[float]
    numa: int
    in_before: bool
    in_after: bool
    reloaded: bool
    non_zero: int
    resets: int
    counters: List[Counter]
    unchanged: Dict[str, Union[int, str, None]]


class _EntitySometimes(TypedDict, total=False):
    interface: int


class Entity(_EntityAlways, _EntitySometimes):
    pass


class _StatsAlways(TypedDict):
    n: int
    mean: Optional[float]
    stddev: Optional[float]
    min: Optional[float]
    p10: Optional[float]
    p25: Optional[float]
    p50: Optional[float]
    p75: Optional[float]
    p90: Optional[float]
    p99: Optional[float]
    max: Optional[float]


class _StatsSometimes(TypedDict, total=False):
    approx: bool


class Stats(_StatsAlways, _StatsSometimes):
    pass


class AlgoProto(TypedDict):
    algo: Optional[str]
    proto: Optional[str]
    records: int


class _P2pSideAlways(TypedDict):
    rank: int


class _P2pSideSometimes(TypedDict, total=False):
    hostname: str
    pid: int
    global_rank: Optional[int]


class P2pSide(_P2pSideAlways, _P2pSideSometimes):
    pass


class Moment(TypedDict):
    step: int
    end_step: int
    from_us: int
    length_s: float


class _BeganAlways(TypedDict):
    rank: Optional[int]
    hostname: str
    step: int
    us: Optional[float]


class _BeganSometimes(TypedDict, total=False):
    time_us: int


class Began(_BeganAlways, _BeganSometimes):
    pass


class _BesideAlways(TypedDict):
    counter: str
    unit: str
    kind: Literal["counter", "gauge"]
    samples: int
    unknown: int


_BesideSometimes = TypedDict(
    "_BesideSometimes",
    {
        "with": "Optional[float]",
        "with_at_least": "Optional[float]",
        "with_at_most": "Optional[float]",
        "without": "Optional[float]",
        "level_with": "Optional[float]",
        "level_without": "Optional[float]",
        "lowest_with": "Optional[float]",
        "highest_with": "Optional[float]",
    },
    total=False,
)


class Beside(_BesideAlways, _BesideSometimes):
    pass


class _CounterAlways(TypedDict):
    name: str
    state: str
    before: Union[int, str, None]
    after: Union[int, str, None]
    meaning: Optional[str]
    groups: List[str]


class _CounterSometimes(TypedDict, total=False):
    metric_id: int
    wrapped: bool
    diff: int
    seconds: Optional[float]
    rate: Optional[float]
    share: Optional[float]
    others_rate: Optional[float]
    unusual: Optional[float]
    unit: str


class Counter(_CounterAlways, _CounterSometimes):
    pass
