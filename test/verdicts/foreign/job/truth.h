// truth.json, and what by construction cannot be told from the logs.
#pragma once
#include "causes.h"
#include "logs.h"
#include "plan.h"

struct Outcome {
  const Plan *plan;
  const Shape *shape;
  std::vector<Cause> causes;
  Weather weather;
  std::vector<std::string> hosts;
  double run_s = 0, healthy_s = 0;  // without the set-up before the first operation
  double end_s = 0, start_unix_ns = 0;
  std::vector<ns_t> step_begin;
  long lines = 0;
  unsigned long long set_seed = 0;
  int steps = 0;
};

void judge_identifiable(Cause &k, const Shape &s, const Weather &w,
                        const std::vector<std::vector<Rec>> &records, ns_t end);
void write_truth(const std::string &path, const Outcome &o);
