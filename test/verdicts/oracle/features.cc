// ni-features DIR < COMMUNICATORS: what an observer measures of a job's logs, "name value" a line (oracle.py).
// COMMUNICATORS: "hash role rank rank ..." a line, from truth.json: the observer knows the job's plan. Reads
// docs/format.md by itself and shares nothing with the product: no rule, only series of times, grouped by whose
// and of what they are, and for each its mean and quantiles, as they are and beside all groups of its sort.
#include <dirent.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace {

constexpr size_t LARGE_WORLD = 64;  // of more ranks the places in the step are left out
constexpr size_t FEW = 6;           // operations of a group; of fewer nothing is told
constexpr size_t SORTED = 1500;     // values of which quantiles are taken, at most
constexpr int SLICES = 6;           // of the run

enum Series { DUR, GAP, LAUNCH, AHEAD, LAG, XFER, LAST, SERIES };
const char *const SERIES_NAMES[SERIES] = {"dur", "gap", "launch", "ahead", "lag", "xfer", "last"};
enum Stat { MEAN, P50, P90, P99, LONG, STATS };
const char *const STAT_NAMES[STATS] = {"mean", "p50", "p90", "p99", "long"};
using Stats = std::array<std::array<double, STATS>, SERIES>;

struct Comm {
  char role;
  std::vector<int> ranks;
};

struct Op {
  int rank, comm, member, peer;  // peer: the member of a message's other side; -1: a collective
  std::string func;
  int size;  // twice the logarithm
  long number;
  double launched, start, ns;
  std::string before;  // what the rank did before
  int slice;
  std::array<float, SERIES> value;
};

struct Logs {
  std::vector<Comm> comms;
  std::unordered_map<std::string, int> by_hash;
  std::vector<std::vector<Op>> ops;                    // of each rank
  std::map<int, std::string> host_of;                  // of each rank with a log
  std::vector<std::pair<std::string, double>> rolled;  // features of the roll-ups
};

std::string text_of(const char *line, const char *key) {
  const char *at = std::strstr(line, key);
  if (!at)
    return "";
  at += std::strlen(key);
  const char *end = std::strchr(at, '"');
  return end ? std::string(at, end) : "";
}

bool number_of(const char *line, const char *key, long long *out) {
  const char *at = std::strstr(line, key);
  if (at)
    *out = std::strtoll(at + std::strlen(key), nullptr, 10);
  return at != nullptr;
}

int size_class(double bytes) { return static_cast<int>(std::lround(2 * std::log2(std::max(1.0, bytes)))); }

void roll_up(Logs &logs, const char *line, int comm, int rank) {
  long long count = 0, sum = 0, most = 0, bytes = 0;
  if (!number_of(line, "\"count\":", &count) || !number_of(line, "\"sum_ns\":", &sum) || count == 0)
    return;
  number_of(line, "\"max_ns\":", &most);
  number_of(line, "\"msg_size_bytes\":", &bytes);
  const std::string name = "roll r" + std::to_string(rank) + " c" + std::to_string(comm) + " " +
      text_of(line, "\"func\":\"") + std::to_string(size_class(static_cast<double>(bytes)));
  logs.rolled.emplace_back(name + " mean", static_cast<double>(sum) / static_cast<double>(count));
  logs.rolled.emplace_back(name + " max", static_cast<double>(most));
  const char *at = std::strstr(line, "\"hist\":{");
  long long seen = 0;
  size_t next = 0;
  const double marks[] = {0.1, 0.5, 0.9, 0.99};
  while (at && (at = std::strchr(at + (seen == 0 && next == 0 ? 8 : 1), '"'))) {
    char *rest;
    const long long edge = std::strtoll(at + 1, &rest, 10);
    if (rest[0] != '"' || rest[1] != ':')
      break;
    seen += std::strtoll(rest + 2, &rest, 10);
    for (; next < 4 && static_cast<double>(seen) >= marks[next] * static_cast<double>(count); next++)
      logs.rolled.emplace_back(name + " q" + std::to_string(next), static_cast<double>(edge));
    at = rest;
    if (*rest != ',')
      break;
  }
}

void read_line(Logs &logs, const char *line) {
  const auto found = logs.by_hash.find(text_of(line, "{\"header\":{\"id\":\""));
  long long member = 0, launched = 0, delta = 0, ns = 0, bytes = 0, number = 0, peer = -1;
  if (found == logs.by_hash.end() || !number_of(line, "\"rank\":", &member))
    return;
  const Comm &comm = logs.comms[static_cast<size_t>(found->second)];
  if (member < 0 || static_cast<size_t>(member) >= comm.ranks.size())
    return;
  const int rank = comm.ranks[static_cast<size_t>(member)];
  logs.host_of.emplace(rank, text_of(line, "\"hostname\":\""));
  if (const char *rolled = std::strstr(line, "\"rollup\":{")) {
    roll_up(logs, rolled, found->second, rank);
    return;
  }
  const char *coll = std::strstr(line, "\"coll_perf\":{"), *message = std::strstr(line, "\"p2p_perf\":{");
  const char *body = coll ? coll : message;
  if (!body)
    return;
  const bool timed = number_of(body, "_exec_time_ns\":", &ns) &&
      number_of(body, "_enqueue_ns\":", &launched) && number_of(body, "_gpu_start_delta_ns\":", &delta);
  if (!timed)
    return;
  number_of(body, "_msg_size_bytes\":", &bytes);
  number_of(body, coll ? "\"coll_sn\":" : "\"p2p_sn\":", &number);
  if (message)
    number_of(body, "\"p2p_peer\":", &peer);
  Op op{};
  op.rank = rank;
  op.comm = found->second;
  op.member = static_cast<int>(member);
  op.peer = static_cast<int>(peer);
  op.func = coll ? text_of(body, "\"coll\":\"") : text_of(body, "\"p2p\":\"");
  op.size = size_class(static_cast<double>(bytes));
  op.number = static_cast<long>(number);
  op.launched = static_cast<double>(launched - 1790000000000000000LL);
  op.start = op.launched + static_cast<double>(delta);
  op.ns = static_cast<double>(ns);
  op.value.fill(NAN);
  logs.ops[static_cast<size_t>(rank)].push_back(op);
}

void read_file(Logs &logs, const std::string &path) {
  gzFile f = gzopen(path.c_str(), "rb");
  if (!f) {
    std::perror(path.c_str());
    std::exit(1);
  }
  static char line[1 << 16];
  gzbuffer(f, 1 << 18);
  while (gzgets(f, line, sizeof line))
    read_line(logs, line);
  gzclose(f);
}

/* What a rank's own log says: how long, how long after what was before, how far ahead it was launched. */
void own_times(Logs &logs) {
  for (auto &ops : logs.ops) {
    std::stable_sort(ops.begin(), ops.end(), [](const Op &a, const Op &b) { return a.start < b.start; });
    double end = 0;
    for (size_t i = 0; i < ops.size(); i++) {
      Op &op = ops[i];
      op.slice = static_cast<int>(i * SLICES / ops.size());
      op.value[DUR] = static_cast<float>(op.ns);
      op.value[AHEAD] = static_cast<float>(op.start - op.launched);
      op.before = i == 0 ? "-" : ops[i - 1].func + logs.comms[static_cast<size_t>(ops[i - 1].comm)].role;
      if (i > 0) {
        op.value[GAP] = static_cast<float>(op.start - end);
        op.value[LAUNCH] = static_cast<float>(op.launched - ops[i - 1].launched);
      }
      end = std::max(end, op.start + op.ns);
    }
  }
}

/* All of one operation end together: who was longest in it came first, and the shortest time is the transfer. */
void together(std::vector<Op *> &same) {
  if (same.size() < 2)
    return;
  double least = same[0]->ns, most = same[0]->ns;
  for (const Op *op : same) {
    least = std::min(least, op->ns);
    most = std::max(most, op->ns);
  }
  for (Op *op : same) {
    op->value[XFER] = static_cast<float>(least);
    op->value[LAG] = static_cast<float>(most - op->ns);
    op->value[LAST] = op->ns == least ? 1 : 0;
  }
}

void times_of_peers(Logs &logs) {
  std::map<std::tuple<int, std::string, long>, std::vector<Op *>> collectives;
  std::map<std::tuple<int, int, int>, std::array<std::vector<Op *>, 2>> messages;
  for (auto &ops : logs.ops)
    for (Op &op : ops) {
      const bool sends = op.func == "Send";
      if (op.peer < 0)
        collectives[{op.comm, op.func, op.number}].push_back(&op);
      else
        messages[{op.comm, sends ? op.member : op.peer, sends ? op.peer : op.member}][sends].push_back(&op);
    }
  for (auto &c : collectives)
    together(c.second);
  for (auto &m : messages) {
    auto &[received, sent] = m.second;
    for (size_t i = 0; received.size() == sent.size() && i < sent.size(); i++) {
      std::vector<Op *> both = {received[i], sent[i]};
      together(both);
    }
  }
}

Stats stats_of(const std::vector<const Op *> &ops) {
  Stats out;
  std::vector<float> v;
  for (int s = 0; s < SERIES; s++) {
    v.clear();
    double sum = 0;
    for (const Op *op : ops)
      if (!std::isnan(op->value[s])) {
        v.push_back(op->value[s]);
        sum += op->value[s];
      }
    out[s].fill(NAN);
    if (v.size() < FEW)
      continue;
    out[s][MEAN] = sum / static_cast<double>(v.size());
    if (s == LAST)
      continue;
    const size_t by = (v.size() + SORTED - 1) / SORTED;
    size_t n = 0;
    for (size_t i = 0; i < v.size(); i += by)
      v[n++] = v[i];
    v.resize(n);
    std::sort(v.begin(), v.end());
    const auto at = [&](double q) { return v[static_cast<size_t>(q * static_cast<double>(n - 1))]; };
    out[s][P50] = at(0.5);
    out[s][P90] = at(0.9);
    out[s][P99] = at(0.99);
    const float limit = 2 * at(0.5);
    out[s][LONG] =
        static_cast<double>(v.end() - std::upper_bound(v.begin(), v.end(), limit)) / static_cast<double>(n);
  }
  return out;
}

/* One way to put operations together: `whose` of each, and of which sort that group is. */
struct Grouping {
  std::map<std::string, std::vector<const Op *>> groups;
  std::map<std::string, std::string> sort_of;
  void add(const Op &op, const std::string &whose, const std::string &sort) {
    groups[whose + " " + sort].push_back(&op);
    sort_of.emplace(whose + " " + sort, sort);
  }
  void print() const {
    std::map<std::string, Stats> each;
    std::map<std::string, std::pair<Stats, Stats>> sums;  // of a sort: sums, and of how many
    for (const auto &g : groups) {
      const Stats s = stats_of(g.second);
      auto &[sum, n] = sums[sort_of.at(g.first)];
      for (int i = 0; i < SERIES; i++)
        for (int k = 0; k < STATS; k++)
          if (!std::isnan(s[i][k])) {
            sum[i][k] += s[i][k];
            n[i][k]++;
          }
      each.emplace(g.first, s);
    }
    for (const auto &[name, s] : each) {
      const auto &[sum, n] = sums.at(sort_of.at(name));
      for (int i = 0; i < SERIES; i++)
        for (int k = 0; k < STATS; k++) {
          if (std::isnan(s[i][k]))
            continue;
          std::printf("%s %s %s\t%.7g\n", name.c_str(), SERIES_NAMES[i], STAT_NAMES[k], s[i][k]);
          if (n[i][k] > 1)
            std::printf("%s %s %s beside\t%.7g\n", name.c_str(), SERIES_NAMES[i], STAT_NAMES[k],
                        s[i][k] - sum[i][k] / n[i][k]);
        }
    }
  }
};

void print(const Logs &logs) {
  Grouping places, roles, ranks, hosts, comms, slices;
  for (const auto &ops : logs.ops)
    for (const Op &op : ops) {
      const std::string rank = "r" + std::to_string(op.rank),
                        role(1, logs.comms[static_cast<size_t>(op.comm)].role);
      const std::string what = op.func + std::to_string(op.size),
                        peer = op.peer < 0 ? "" : " to " + std::to_string(op.peer - op.member);
      if (logs.ops.size() <= LARGE_WORLD)
        places.add(op, rank + " c" + std::to_string(op.comm),
                   role + " " + what + peer + " after " + op.before);
      roles.add(op, rank, role);
      ranks.add(op, rank, "all");
      hosts.add(op, logs.host_of.at(op.rank), role);
      comms.add(op, "c" + std::to_string(op.comm), role + " all");
      slices.add(op, rank, "slice " + std::to_string(op.slice));
    }
  for (const Grouping *g : {&places, &roles, &ranks, &hosts, &comms, &slices})
    g->print();
  for (const auto &[name, value] : logs.rolled)
    std::printf("%s\t%.7g\n", name.c_str(), value);
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "Usage: ni-features DIR < COMMUNICATORS (test/verdicts/oracle/oracle.py)\n");
    return 64;
  }
  Logs logs;
  int world = 0;
  for (std::string text; std::getline(std::cin, text);) {
    std::istringstream in(text);
    std::string hash;
    Comm c;
    in >> hash >> c.role;
    for (int r; in >> r;) {
      c.ranks.push_back(r);
      world = std::max(world, r + 1);
    }
    logs.by_hash[hash] = static_cast<int>(logs.comms.size());
    logs.comms.push_back(c);
  }
  logs.ops.resize(static_cast<size_t>(world));
  DIR *d = opendir(argv[1]);
  if (!d) {
    std::perror(argv[1]);
    return 1;
  }
  while (const dirent *e = readdir(d)) {
    const std::string name = e->d_name;
    if (name.find(".jsonl") != std::string::npos)
      read_file(logs, std::string(argv[1]) + "/" + name);
  }
  closedir(d);
  own_times(logs);
  times_of_peers(logs);
  print(logs);
  return 0;
}
