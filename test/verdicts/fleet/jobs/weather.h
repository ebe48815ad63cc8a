// Weather: what happens to logs on their way to the reader.
#pragma once

#include <set>

#include "causes.h"

struct Weather {
  std::vector<std::string> names;
  std::vector<double> offset_s, drift;  // of each host's clock
  int step_host = -1;
  double step_at = 0, step_s = 0;  // a clock that is put back
  int tick_ns = 32;                // of the GPUs' clocks
  int coarse_host = -1;            // -1: none, -2: all
  double start_noise_ns = 0, time_noise_ns = 0;
  std::set<int> missing, truncated, killed, dropping;
  int sample = 1;
  int64_t min_size = 0;
  bool no_p2p = false, cpu_timing = false, other_job = false, other_attempt = false;
  bool no_control_lines = false, no_launcher = false, plain_files = false;

  bool has(const char *name) const {
    for (auto &n : names)
      if (n == name)
        return true;
    return false;
  }
};

// What one process writes of one operation.
enum class Fate : uint8_t { Written, Sampled, TooSmall, NoP2p, Dropped };

Weather fair_weather(const Job &job);
void draw_weather(const Job &job, Dice &dice, const std::vector<Cause> &causes, Weather &weather);
std::vector<Fate> fates(const Job &job, const Weather &weather, int rank, const std::vector<Record> &records);

// Is anything in the log that could tell? Sets identifiable and why_not.
void judge(const Job &job, const Weather &weather, const Outcome &outcome,
           const std::vector<std::vector<Fate>> &fate, int number, Cause &cause);
