// Causes: what slows a job down, on whom, how strongly, and when.
#pragma once

#include <string>
#include <vector>

#include "machine/engine.h"

struct Cause {
  std::string kind, level;
  std::vector<int> ranks;
  std::vector<int> hosts;
  int nic = -1, index = -1;
  bool benign = false;
  bool paused = false;    // it shows as pauses: moments are of interest
  uint64_t seed = 0;      // of its own draws
  double strength = 0.5;  // 0 to 1 within what reports say of such causes
  double severity = 0;    // in its own terms, see what
  std::string what;
  std::vector<Window> windows;  // seconds; factor is not used
  bool always = false;          // from the first to the last step
  double period_s = 0;
  int every_steps = 0;
  double cost = 0;
  bool identifiable = true;
  std::string why_not;
};

// What a job has without any cause: its own checkpoints, for example.
Effects base_effects(const Job &job);

// Draws a cause that this job can have; empty kind: this one it cannot have.
Cause draw_cause(const Job &job, Dice &dice, const std::string &kind, const std::vector<Cause> &others);

// Puts a cause into the effects. span: the run's time without causes.
void apply_cause(const Job &job, Cause &cause, int number, double span, int steps, Effects &e);

const std::vector<std::string> &cause_kinds();
