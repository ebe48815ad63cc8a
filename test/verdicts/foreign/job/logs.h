// Writes what the plugin would have written, with the weather of the job.
#pragma once
#include <string>
#include <vector>
#include "engine.h"

struct Weather {
  std::vector<std::string> names;  // what was chosen, for truth.json
  double noise_ns = 200;           // of stamps
  double timer_ns = 32;
  std::vector<double> offset_ns, drift;  // of the hosts' clocks
  int step_host = -1;                    // whose clock is set in the run
  ns_t step_at = 0;
  double step_ns = 0;
  std::vector<bool> missing;  // by rank
  int sample = 1;
  double min_size = 0;
  bool no_p2p = false;
  bool truncated = false;
  std::string other;      // "", "attempt", "job": what else lies in the folder
  bool old_nccl = false;  // no call_sn
};

Weather draw_weather(const Cluster &c, ns_t run, bool messages, Rng &rng);

struct LogJob {
  std::string dir;
  const Cluster *c;
  const std::vector<Comm> *comms;
  const std::vector<std::vector<Rec>> *records;
  Weather w;
  uint64_t seed;
  double start_unix_ns;
  bool killed = false;  // no final lines
  std::vector<std::string> hosts;
};

bool kept(const Weather &w, const Rec &r);
long write_logs(const LogJob &j);  // operation lines written
