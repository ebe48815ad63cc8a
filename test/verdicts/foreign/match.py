"""When does a finding name a cause? The rules of the grader, strict ones.

Each finding is reduced to a Subject first, since findings by durations have other keys than those
by own time.
"""

NETWORK = (
    "slow_nvlink",
    "slow_nic",
    "slow_pair",
    "slow_communicator",
    "flapping_link",
    "congestion",
)
NETWORK_LEVELS = ("nic", "rail", "pair", "nvlink", "communicator", "fabric")


class Subject:
    def __init__(self, finding):
        self.kind = finding.get("kind")
        self.level = finding.get("level")
        self.accuses = finding.get("class", "fault") == "fault"
        ranks = finding.get("ranks")
        if ranks is None and finding.get("rank") is not None:
            ranks = [finding["rank"]]
        self.ranks = set(ranks or [])
        hosts = finding.get("hosts")
        if hosts is None and finding.get("hostname"):
            hosts = [finding["hostname"]]
        self.hosts = set(hosts or [])
        self.cost = finding.get("cost_percent")
        self.text = finding.get("text", "")

    def network(self):
        return self.kind in NETWORK or self.level in NETWORK_LEVELS


def match_rank(cause, s):
    if s.level == "rank" and cause["ranks"][0] in s.ranks:
        return "right" if len(s.ranks) == 1 else "named" if len(s.ranks) <= 4 else None
    if s.level == "host" and s.hosts == set(cause["hosts"]):
        return "named"
    return None


def match_host(cause, s):
    if s.hosts != set(cause["hosts"]):
        return None
    if s.level == "host":
        return "right"
    if cause["kind"] == "noisy_neighbour" and s.level in ("nic", "rail"):
        return "named"
    # Ranks one by one are added up by named_by_ranks().
    if s.level == "rank" and len(s.ranks) * 2 > len(cause["ranks"]):
        return "named"
    return None


def match_nic(cause, s):
    host = cause["hosts"][0]
    if host not in s.hosts:
        return None
    if s.level in ("nic", "rail"):
        touches = not s.ranks or s.ranks & set(cause["ranks"])
        return "right" if s.hosts == {host} and touches else "named" if s.hosts == {host} else None
    if s.level == "host" and s.hosts == {host}:
        return "named"
    return "named" if s.level in ("communicator", "pair") else None


def match_nvlink(cause, s):
    if s.level == "nvlink" and set(cause["hosts"]) == s.hosts:
        return "right" if not s.ranks or cause["ranks"][0] in s.ranks else "named"
    if s.level == "communicator" and cause["ranks"][0] in s.ranks and s.network():
        return "named"
    if s.level == "pair" and s.network() and cause["ranks"][0] in s.ranks:
        return "named"
    return match_rank(cause, s) and "named"


def match_pair(cause, s):
    both = set(cause["hosts"])
    if s.level == "pair" and s.hosts == both:
        return "right"
    if s.level == "communicator" and both <= s.hosts:
        return "named"
    return "named" if s.level in ("nic", "rail", "host", "pair") and s.hosts & both else None


def match_fabric(cause, s):
    if s.level == "fabric":
        return "right"
    return "named" if s.network() and s.level != "nvlink" else None


def match_group(cause, s):
    """A stage, a replica, the ranks of some experts."""
    ranks = set(cause["ranks"])
    if s.level in NETWORK_LEVELS or not s.ranks:
        return None
    if s.ranks == ranks:
        return "right"
    return "named" if s.ranks <= ranks and len(s.ranks) * 2 > len(ranks) else None


def match_job(cause, s, n_ranks):
    if cause["kind"] == "uneven_steps":
        return "right" if s.kind == "uneven_work" else None
    if s.kind != "periodic_work":
        return None
    return "right" if s.level == "job" or len(s.ranks) * 10 >= n_ranks * 9 else "named"


RULES = {
    "rank": match_rank,
    "host": match_host,
    "nic": match_nic,
    "nvlink": match_nvlink,
    "pair": match_pair,
    "fabric": match_fabric,
    "stage": match_group,
    "replica": match_group,
    "expert": match_group,
}


def match(cause, subject, n_ranks):
    """None, "named" or "right"."""
    if not subject.accuses and not cause["benign"]:
        return None
    if cause["level"] == "job":
        return match_job(cause, subject, n_ranks)
    return RULES[cause["level"]](cause, subject)


def named_by_ranks(cause, subjects):
    """Findings of single ranks that together are most of the cause's ranks; None or their list."""
    if cause["level"] not in ("host", "stage", "replica", "expert"):
        return None
    ranks = set(cause["ranks"])
    mine = [s for s in subjects if s.level == "rank" and s.ranks and s.ranks <= ranks]
    mine = [s for s in mine if s.accuses or cause["benign"]]
    covered = set().union(*[s.ranks for s in mine]) if mine else set()
    needed = len(ranks) if cause["level"] == "stage" else len(ranks) // 2 + 1
    return mine if len(covered) >= needed else None


def is_innocent(subject, causes, n_ranks):
    """Does this accusation hit somebody who has nothing to do with any cause?"""
    for cause in causes:
        if match(cause, subject, n_ranks):
            return False
        network = (
            cause["level"] in ("nic", "nvlink", "pair", "fabric")
            or cause["kind"] == "noisy_neighbour"
        )
        if subject.level in ("fabric", "communicator"):
            if network and (not cause["hosts"] or subject.hosts & set(cause["hosts"])):
                return False
            continue
        if subject.hosts & set(cause["hosts"]) or subject.ranks & set(cause["ranks"]):
            return False
        if cause["level"] == "fabric" and subject.network():
            return False
    return True
