#include "truth.h"
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

static bool crosses(const Network::Load &load, const std::vector<int> &resources) {
  for (auto &l : load)
    if (std::find(resources.begin(), resources.end(), l.first) != resources.end())
      return true;
  return false;
}

// Is there something recorded that crosses it, and something alike that does not?
static bool has_comparison(const Cause &k, const Shape &s, const Weather &w,
                           const std::vector<std::vector<Rec>> &records, bool &any) {
  std::map<std::pair<int, int>, std::set<bool>> seen;  // by function and size
  std::set<std::vector<int>> known;
  std::vector<int> resources = cause_resources(k, s);
  for (int r = 0; r < s.c.n_ranks(); r++) {
    if (w.missing[r])
      continue;
    for (const Rec &rec : records[r]) {
      if (rec.bytes < 262144 || !kept(w, rec))
        continue;
      int size = (int)(std::log2(rec.bytes) + 0.5);
      bool p2p = rec.func == SEND || rec.func == RECV;
      if (!known.insert({rec.comm, rec.func, size, p2p ? rec.rank : 0, p2p ? rec.peer : 0}).second)
        continue;
      const Comm &m = s.comms[rec.comm];
      Network::Load load = p2p ? message_load(s.c, m.members[rec.rank], m.members[rec.peer], 1)
                               : collective_load(s.c, m, (Func)rec.func, 1);
      bool c = crosses(load, resources);
      any |= c;
      seen[{p2p ? (int)SEND : (int)rec.func, size}].insert(c);
    }
  }
  for (auto &e : seen)
    if (e.second.size() == 2)
      return true;
  return false;
}

void judge_identifiable(Cause &k, const Shape &s, const Weather &w,
                        const std::vector<std::vector<Rec>> &records, ns_t end) {
  auto no = [&k](const char *why) {
    k.identifiable = false;
    k.why_not = why;
  };
  bool network = k.level == "nic" || k.level == "nvlink" || k.level == "pair" || k.level == "fabric";
  int left = 0;
  for (int r : k.ranks)
    left += !w.missing[r];
  if (!k.ranks.empty() && left == 0 && k.level != "nic" && k.level != "nvlink")
    return no("the logs of all its ranks are missing");
  if (k.kind == "uneven_steps" && s.name != "megatron" && s.name != "interleaved" && s.name != "tpdp" &&
      s.name != "cp")
    return no("work varies at random over ranks and steps, and no recorded size shows it");
  if (network) {
    bool any = false;
    bool compared = has_comparison(k, s, w, records, any);
    bool in_time = k.windows[0].begin > 0 && k.windows[0].begin < end;
    if (!any)
      return no("nothing of size that crosses it is recorded");
    if (!compared && !in_time && k.kind != "lossy_nic")
      return no("all that is alike crosses it, all the time: nothing to compare with");
  }
  if (!k.windows.empty() && k.windows[0].begin > end)
    return no("the run ended before it began");
  size_t moments = 0;
  for (double m : k.moments)
    moments += m < end;
  if (!k.moments.empty() && moments < 2)
    return no("it happened less than twice");
}

static int step_of(const std::vector<ns_t> &begin, ns_t t) {
  return std::max(0, (int)(std::upper_bound(begin.begin(), begin.end(), t) - begin.begin()) - 1);
}

static void list(FILE *f, const char *key, const std::vector<int> &v) {
  fprintf(f, "\"%s\":[", key);
  for (size_t i = 0; i < v.size(); i++)
    fprintf(f, "%s%d", i ? "," : "", v[i]);
  fprintf(f, "],");
}

static void names(FILE *f, const char *key, const std::vector<std::string> &v) {
  fprintf(f, "\"%s\":[", key);
  for (size_t i = 0; i < v.size(); i++)
    fprintf(f, "%s\"%s\"", i ? "," : "", v[i].c_str());
  fprintf(f, "],");
}

static void write_times(FILE *f, const Cause &k, const Outcome &o) {
  ns_t end = o.end_s * 1e9;
  fprintf(f, "\"windows\":[");
  int n = 0;
  for (const Window &w : k.windows) {
    if (w.begin > end)
      continue;
    double b = std::max(w.begin, 0.0);
    if (k.from_step > 0 && k.from_step < (int)o.step_begin.size())
      b = o.step_begin[k.from_step];
    double e = std::min(w.end, end);
    fprintf(f, "%s{\"begin_s\":%.3f,\"end_s\":%.3f,\"begin_step\":%d,\"end_step\":%d}", n++ ? "," : "",
            b / 1e9, e / 1e9, step_of(o.step_begin, b), step_of(o.step_begin, e));
  }
  fprintf(f, "],\"moments_s\":[");
  n = 0;
  for (double m : k.moments)
    if (m < end)
      fprintf(f, "%s%.3f", n++ ? "," : "", m / 1e9);
  fprintf(f, "],");
}

void write_truth(const std::string &path, const Outcome &o) {
  FILE *f = fopen(path.c_str(), "w");
  const Cluster &c = o.shape->c;
  fprintf(f,
          "{\"shape\":\"%s\",\"set_seed\":%llu,\"seed\":%llu,\"n_ranks\":%d,\"n_hosts\":%d,"
          "\"gpus\":%d,"
          "\"nics\":%d,\"steps\":%d,\"run_s\":%.3f,\"healthy_run_s\":%.3f,\"lines\":%ld,"
          "\"uneven\":%s,"
          "\"start_unix_ns\":%.0f,\n",
          o.shape->name.c_str(), o.set_seed, o.plan->seed, c.n_ranks(), c.n_hosts, c.gpus, c.nics, o.steps,
          o.run_s, o.healthy_s, o.lines, o.plan->uneven ? "true" : "false", o.start_unix_ns);
  names(f, "hosts", o.hosts);
  names(f, "weather", o.weather.names);
  std::vector<int> missing;
  for (int r = 0; r < c.n_ranks(); r++)
    if (o.weather.missing[r])
      missing.push_back(r);
  list(f, "missing_ranks", missing);
  fprintf(f, "\n\"causes\":[");
  for (size_t i = 0; i < o.causes.size(); i++) {
    const Cause &k = o.causes[i];
    std::vector<std::string> hosts;
    for (int h : k.hosts)
      hosts.push_back(o.hosts[h]);
    fprintf(f, "%s\n{\"kind\":\"%s\",\"level\":\"%s\",", i ? "," : "", k.kind.c_str(), k.level.c_str());
    list(f, "ranks", k.ranks);
    names(f, "hosts", hosts);
    fprintf(f, "\"nic\":%d,\"index\":%d,\"benign\":%s,\"severity\":%.5f,\"cost\":%.5f,", k.nic, k.index,
            k.benign ? "true" : "false", k.severity, k.cost);
    write_times(f, k, o);
    fprintf(f, "\"period_s\":%.3f,\"every_steps\":%d,\"from_step\":%d,", k.period_s, k.every, k.from_step);
    fprintf(f, "\"identifiable\":%s,\"why_not\":\"%s\"}", k.identifiable ? "true" : "false",
            k.why_not.c_str());
  }
  fprintf(f, "]}\n");
  fclose(f);
}
