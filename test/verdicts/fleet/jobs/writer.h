// Writes the logs of a job as docs/format.md has them.
#pragma once

#include "weather.h"

struct Attempt {
  int64_t start_unix_ns = 0;
  int restart = 0;    // of the launcher
  uint64_t salt = 0;  // of pids and the like
  bool killed = false;
  bool rollups = true;
  std::string job_id;
};

void write_logs(const std::string &folder, const Job &job, const Weather &weather, const Outcome &outcome,
                const std::vector<std::vector<Fate>> &fate, const Attempt &attempt);
