// Random numbers of two kinds.
// Dice: a stream of draws, used while a job is planned (shape, causes, weather).
// unit(), gauss(): draws addressed by a key (rank, step, place). They do not depend on what was drawn before,
// so a job with and without its cause sees the same luck everywhere else.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

inline uint64_t mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

inline uint64_t key_of(uint64_t a, uint64_t b, uint64_t c = 0, uint64_t d = 0) {
  return mix64(mix64(mix64(mix64(a) ^ b) ^ c) ^ d);
}

inline double unit(uint64_t key) { return (double(mix64(key) >> 11) + 0.5) * 0x1p-53; }

inline double gauss(uint64_t key) {
  double u = unit(key), v = unit(key ^ 0x5851f42d4c957f2dULL);
  return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
}

class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(mix64(seed)) {}
  uint64_t next() { return mix64(state_++); }
  double real() { return unit(next()); }
  double between(double low, double high) { return low + (high - low) * real(); }
  // Evenly on a scale of factors: 1 to 10 is as likely as 10 to 100.
  double geometric(double low, double high) { return low * std::pow(high / low, real()); }
  int whole(int low, int high) { return low + int(next() % uint64_t(high - low + 1)); }
  bool chance(double p) { return real() < p; }
  double normal() { return gauss(next()); }
  template <class T>
  const T &pick(const std::vector<T> &from) {
    return from[next() % from.size()];
  }
  template <class T>
  void shuffle(std::vector<T> &list) {
    for (size_t i = list.size(); i > 1; i--)
      std::swap(list[i - 1], list[next() % i]);
  }

 private:
  uint64_t state_;
};
