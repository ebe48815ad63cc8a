// Random numbers by counter: a draw depends on what it is for, not on what was drawn before.
// So a simulation without a cause has the same draws as the one with it.
#pragma once
#include <cmath>
#include <cstdint>

inline uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  x ^= x >> 31;
  return x;
}

inline uint64_t hash4(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  uint64_t h = mix(a + 0x9e3779b97f4a7c15ULL);
  h = mix(h ^ (b + 0x632be59bd9b4e019ULL));
  h = mix(h ^ (c + 0xd1b54a32d192ed03ULL));
  return mix(h ^ (d + 0x8cb92ba72f3d8dd7ULL));
}

inline double unit(uint64_t h) { return (double)(h >> 11) / 9007199254740992.0; }

// A normal draw, from two halves of one hash.
inline double normal(uint64_t h) {
  double u = unit(h) + 1e-12;
  double v = unit(mix(h + 1));
  return std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v);
}

// A sequence, for what is drawn once while a job is set up.
class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(mix(seed)) {}
  double uniform(double lo, double hi) { return lo + (hi - lo) * unit(next()); }
  int range(int lo, int hi) { return lo + (int)(next() % (uint64_t)(hi - lo + 1)); }
  bool chance(double p) { return unit(next()) < p; }
  double log_uniform(double lo, double hi) { return lo * std::exp(unit(next()) * std::log(hi / lo)); }
  double exponential(double mean) { return -mean * std::log(unit(next()) + 1e-12); }
  template <class T, int N>
  T pick(const T (&list)[N]) {
    return list[next() % N];
  }
  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    return mix(state_);
  }

 private:
  uint64_t state_;
};
