/* A run from summary.json: groups, communicators and, where they are there, steps. Numbers that are none are NAN. */
#define SIMDJSON_EXCEPTIONS 0
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
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
  dom::array bins;
  std::vector<ni_step> step;
  if (doc["steps"].get(all) || all["bins"].get(bins)) return 0;
  for (dom::element bin : bins) {
    float v[6]; /* when it began, and its parts */
    size_t n = 0;
    dom::array list;
    if (step.size() == STEPS_MAX || bin.get(list) || list.size() != 6) break;
    for (dom::element e : list) {
      double x;
      v[n++] = e.get(x) || x < 0 || x > 1e12 ? NAN : (float)x;
    }
    step.push_back({0, v[1], v[2], v[3], v[4], v[5]});
  }
  o->steps = (uint32_t)whole(all, "n_steps", 0);
  o->bin_steps = (uint32_t)whole(all, "bin_steps", 1);
  return ni_diff_add_steps(o, step.data(), (uint32_t)step.size());
}

int group(ni_diff_run *o, dom::element g) {
  dom::element us;
  std::string type = text(g, "comm_type"), func = text(g, "func");
  bool transfer = !g["transfer_time_us"].get(us) && number(us, "n") > 0, p2p = text(g, "kind") == "p2p";
  int timing = 0;
  if (!transfer && g["exec_time_us"].get(us)) return 0;
  while (timing < NI_TIMING_COUNT && text(g, "timing_source") != ni_timing_names[timing]) timing++;
  if (timing == NI_TIMING_COUNT || (p2p && o->bins)) return 0;
  for (int i = 0; i < NI_TYPE_COUNT; i++)
    if (type == ni_comm_type_names[i]) type = ni_comm_type_words[i];
  ni_stats s = {};
  double bytes = number(g, "msg_size_bytes"), n = number(us, "n");
  if (!(bytes >= 0 && bytes < 1e18) || !(n > 0 && n < 1e18)) return 0;
  s.n = (uint64_t)n;
  s.p25 = number(us, "p25"), s.p50 = number(us, "p50"), s.p75 = number(us, "p75");
  double per_step = o->steps ? number(g, "records") / o->ranks / o->steps : 0;
  return ni_diff_add_function(o, func.c_str(), type.c_str(), (uint64_t)bytes, (ni_timing)timing, &s, transfer, per_step);
}

bool read(ni_diff_run *o, dom::element doc, const char *&what) {
  dom::array list;
  dom::element job;
  if (text(doc, "schema_version") != "nccl-inspector-summary-1") return what = "no summary.json of `summary`", false;
  o->from = "summary.json";
  o->world = o->version = -1;
  if (!doc["job"].get(job)) o->world = whole(job, "world_size", -1), o->version = whole(job, "nccl_version", -1);
  bool complete = true;
  if (!doc["complete"].get(complete) && !complete) snprintf(o->trouble, sizeof o->trouble, "its summary says so");
  if (doc["ranks"].get(list)) return what = "it has no list of ranks", false;
  o->ranks = (uint32_t)list.size();
  std::map<int, size_t, std::greater<int>> comms;
  if (!doc["communicators"].get(list))
    for (dom::element c : list)
      if (number(c, "operations") >= NI_DIFF_STEPS && whole(c, "n_ranks", 0) > 1) comms[whole(c, "n_ranks", 0)]++;
  std::string layout;
  for (auto [ranks, n] : comms) layout += (layout.empty() ? "" : ", ") + std::to_string(n) + " of " + std::to_string(ranks);
  snprintf(o->layout, sizeof o->layout, "%s", layout.c_str());
  what = nullptr;
  double records = number(doc, "records");
  o->per_step = 0;
  if (steps(o, doc) < 0 || doc["groups"].get(list)) return false;
  for (dom::element g : list)
    if (group(o, g) < 0) return false;
  if (o->steps && o->ranks && records > 0) o->per_step = records / o->ranks / o->steps;
  return true;
}

}

extern "C" bool ni_diff_read_json(ni_diff_run *o, const char *path, char *why, size_t cap) {
  dom::parser parser(256 << 20);
  dom::element doc;
  const char *what = nullptr;
  simdjson::error_code e = parser.load(path).get(doc);
  if (e) what = simdjson::error_message(e);
  else if (read(o, doc, what)) return true;
  snprintf(why, cap, "%s: %s", path, what ? what : "no memory, or no list of groups");
  return false;
}
