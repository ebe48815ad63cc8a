// Which job of a set has which shape and causes.
#pragma once
#include <string>
#include <vector>

struct Plan {
  std::string shape;
  std::vector<std::string> kinds;  // none: healthy
  bool uneven = false;             // healthy, with more of what is natural
  unsigned long long seed = 0;
};

std::vector<Plan> plan_set(unsigned long long seed, int n_jobs);
