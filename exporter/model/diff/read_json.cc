/*
 * A run from summary.json: groups, communicators and, where they are there, steps. Numbers that are none are
 * NAN.
 */
#define SIMDJSON_EXCEPTIONS 0
#include <simdjson.h>

#include <cmath>
#include <string>
#include <vector>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function named as its struct, in C */
extern "C" {
#include "gather.h"
#include "read_json.h"
}
#pragma GCC diagnostic pop

namespace dom = simdjson::dom;

namespace {

constexpr size_t STEPS_MAX = 1 << 16;

double number(dom::element e, const char *key) {
  double v;
  return e[key].get(v) ? NAN : v;
}

std::string text(dom::element e, const char *key) {
  std::string_view v;
  return e[key].get(v) ? std::string() : std::string(v.substr(0, 255));
}

int whole(dom::element e, const char *key, int none) {
  double v = number(e, key);
  return v >= 0 && v < 1e9 ? (int)v : none;
}

int steps(ni_diff_run *o, dom::element doc) {
  dom::element all;
  dom::array bins, list;
  std::vector<ni_step> step;
  if (doc["steps"].get(all) || all["bins"].get(bins))
    return 0;
  for (dom::element bin : bins) {
    std::vector<float> v; /* when it began, and its parts */
    if (step.size() == STEPS_MAX || bin.get(list) || list.size() != 6)
      break;
    for (dom::element e : list) {
      double x;
      v.push_back(e.get(x) || x < 0 || x > 1e12 ? NAN : (float)x);
    }
    step.push_back({0, v[1], v[2], v[3], v[4], v[5]});
  }
  o->steps = (uint32_t)whole(all, "n_steps", 0);
  o->bin_steps = (uint32_t)whole(all, "bin_steps", 1);
  return ni_diff_add_steps(o, step.data(), (uint32_t)step.size());
}

int group(ni_diff_run *o, dom::element g) {
  dom::element us;
  std::string type = text(g, "comm_type");
  bool transfer = !g["transfer_time_us"].get(us) && number(us, "n") > 0;
  int timing = 0;
  if (!transfer && g["exec_time_us"].get(us))
    return 0;
  while (timing < NI_TIMING_COUNT && text(g, "timing_source") != ni_timing_names[timing])
    timing++;
  if (timing == NI_TIMING_COUNT || (text(g, "kind") == "p2p" && o->bins))
    return 0;
  for (int i = 0; i < NI_TYPE_COUNT; i++)
    if (type == ni_comm_type_names[i])
      type = ni_comm_type_words[i];
  double bytes = number(g, "msg_size_bytes"), n = number(us, "n"),
         per_step = o->steps ? number(g, "records") / o->ranks / o->steps : 0;
  if (!(bytes >= 0 && bytes < 1e18) || !(n > 0 && n < 1e18))
    return 0;
  ni_stats s = {};
  s.n = (uint64_t)n;
  s.p25 = number(us, "p25"), s.p50 = number(us, "p50"), s.p75 = number(us, "p75");
  return ni_diff_add_function(o, text(g, "func").c_str(), type.c_str(), (uint64_t)bytes, (ni_timing)timing,
                              &s, transfer, per_step);
}

/* What is wrong with it; "": no memory. */
const char *read(ni_diff_run *o, dom::element doc) {
  dom::array list;
  dom::element job;
  std::vector<int32_t> n_ranks;
  bool complete = true;
  if (text(doc, "schema_version") != "nccl-inspector-summary-1")
    return "no summary.json of `summary`";
  o->from = "summary.json";
  o->world_size = -1;
  if (!doc["job"].get(job)) {
    int version = whole(job, "nccl_version", -1);
    o->world_size = whole(job, "world_size", -1);
    if (version >= 0)
      snprintf(o->fact[NI_DIFF_NCCL], sizeof *o->fact, "%d", version);
  }
  if (!doc["complete"].get(complete) && !complete)
    snprintf(o->trouble, sizeof o->trouble, "its summary says so");
  if (doc["ranks"].get(list))
    return "it has no list of ranks";
  o->ranks = (uint32_t)list.size();
  if (!doc["communicators"].get(list))
    for (dom::element c : list)
      if (number(c, "operations") >= NI_DIFF_STEPS && whole(c, "n_ranks", 0) > 1)
        n_ranks.push_back(whole(c, "n_ranks", 0));
  ni_diff_layout(o, n_ranks.data(), n_ranks.size());
  if (steps(o, doc) < 0)
    return "";
  if (o->steps)
    snprintf(o->fact[NI_DIFF_N_STEPS], sizeof *o->fact, "%u", o->steps);
  if (o->steps && o->ranks && number(doc, "records") > 0)
    o->per_step = number(doc, "records") / o->ranks / o->steps;
  if (doc["groups"].get(list))
    return "it has no list of groups";
  for (dom::element g : list)
    if (group(o, g) < 0)
      return "";
  return nullptr;
}

}  // namespace

extern "C" bool ni_diff_read_json(ni_diff_run *o, const char *path, char *why, size_t cap) {
  dom::parser parser(256 << 20);
  dom::element doc;
  simdjson::error_code e = parser.load(path).get(doc);
  const char *what = e ? simdjson::error_message(e) : read(o, doc);
  if (what)
    snprintf(why, cap, "%s: %s", path, *what ? what : "no memory");
  return !what;
}
