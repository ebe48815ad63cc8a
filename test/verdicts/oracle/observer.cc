// ni-observer < LIST: whether the first candidate's jobs can be told from all others' by their features.
// LIST: "candidate draw FILE" a line; candidates count from 0, the planted one; FILE is of ni-features. Draw by
// draw is left out: the observer learns from the other draws of all candidates, then each left-out job has a duel
// for each two candidates. It is named for the one that wins all of its duels. Prints JSON.
//
// A duel: the features whose means differ most between the two (by their deviation within candidates, pooled over
// all candidates), and whose mean is nearer. How many features, and whether of single places in the step as well,
// is what does best on the draws that are learnt from.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

const int SIZES[] = {1, 4, 16, 64, 256};
constexpr int N_SIZES = 5, FAMILIES = 2, LARGEST = 256;

struct Data {
  int candidates = 0, draws = 0;
  std::vector<std::string> names;
  std::vector<bool> of_place;
  std::vector<std::vector<float>> value;  // [candidate * draws + draw][feature]
  const float *at(int candidate, int draw) const {
    return value[static_cast<size_t>(candidate * draws + draw)].data();
  }
};

bool read(Data &data) {
  std::map<std::pair<int, int>, std::string> files;
  for (std::string text; std::getline(std::cin, text);) {
    std::istringstream in(text);
    int candidate, draw;
    std::string file;
    in >> candidate >> draw >> file;
    files[{candidate, draw}] = file;
    data.candidates = std::max(data.candidates, candidate + 1);
    data.draws = std::max(data.draws, draw + 1);
  }
  std::unordered_map<std::string, int> number;
  std::vector<int> seen;
  for (const auto &[place, path] : files) {
    FILE *f = std::fopen(path.c_str(), "r");
    if (!f) {
      std::perror(path.c_str());
      return false;
    }
    std::vector<float> v(data.names.size(), NAN);
    char line[512];
    while (std::fgets(line, sizeof line, f)) {
      char *tab = std::strchr(line, '\t');
      if (!tab)
        continue;
      const std::string name(line, tab);
      const auto [it, fresh] = number.emplace(name, static_cast<int>(data.names.size()));
      if (fresh) {
        data.names.push_back(name);
        seen.push_back(0);
        v.push_back(NAN);
      }
      const auto i = static_cast<size_t>(it->second);
      seen[i] += std::isnan(v[i]);
      v[i] = std::strtof(tab + 1, nullptr);
    }
    std::fclose(f);
    data.value.push_back(v);
  }
  const size_t all = data.value.size();
  if (all != static_cast<size_t>(data.candidates * data.draws))
    return false;
  /* Those that are in all jobs; a feature that only some have is what chance orders. */
  size_t n = 0;
  for (size_t i = 0; i < seen.size(); i++) {
    if (static_cast<size_t>(seen[i]) != all)
      continue;
    for (auto &v : data.value)
      v[n] = v[i];
    data.names[n++] = data.names[i];
  }
  data.names.resize(n);
  for (auto &v : data.value)
    v.resize(n);
  for (const std::string &name : data.names)
    data.of_place.push_back(name.find(" after ") != std::string::npos);
  return true;
}

/* What is learnt from all draws but one (or two, to choose how): means of candidates, and deviations within. */
struct Learnt {
  std::vector<std::vector<float>> mean;
  std::vector<float> variance;
  Learnt(const Data &d, int out, int also)
      : mean(static_cast<size_t>(d.candidates)), variance(d.names.size()) {
    const size_t n = d.names.size();
    std::vector<double> squares(n, 0);
    int used = 0;
    for (int i = 0; i < d.draws; i++)
      used += i != out && i != also;
    for (int c = 0; c < d.candidates; c++) {
      std::vector<double> sum(n, 0);
      for (int i = 0; i < d.draws; i++)
        for (size_t k = 0; i != out && i != also && k < n; k++)
          sum[k] += d.at(c, i)[k];
      auto &m = mean[static_cast<size_t>(c)];
      m.resize(n);
      for (size_t k = 0; k < n; k++)
        m[k] = static_cast<float>(sum[k] / used);
      for (int i = 0; i < d.draws; i++)
        for (size_t k = 0; i != out && i != also && k < n; k++)
          squares[k] += (d.at(c, i)[k] - m[k]) * static_cast<double>(d.at(c, i)[k] - m[k]);
    }
    for (size_t k = 0; k < n; k++) {
      const double least = 1e-4 * std::fabs(mean[0][k]) + 1e-3;
      variance[k] = static_cast<float>(squares[k] / (d.candidates * (used - 1)) + least * least);
    }
  }
  float apart(int a, int b, size_t k) const {
    const float x = mean[static_cast<size_t>(a)][k] - mean[static_cast<size_t>(b)][k];
    return x * x / variance[k];
  }
};

/* Features by how far they are apart, the largest first: of all, and without those of single places. */
std::array<std::vector<int>, FAMILIES> ranked(const Data &d, const Learnt &l, int a, int b) {
  std::array<std::vector<int>, FAMILIES> out;
  for (int family = 0; family < FAMILIES; family++) {
    std::vector<std::pair<float, int>> far;
    for (size_t k = 0; k < d.names.size(); k++)
      if (family == 0 || !d.of_place[k])
        far.emplace_back(-l.apart(a, b, k), static_cast<int>(k));
    const size_t n = std::min<size_t>(LARGEST, far.size());
    std::partial_sort(far.begin(), far.begin() + static_cast<long>(n), far.end());
    for (size_t i = 0; i < n; i++)
      out[static_cast<size_t>(family)].push_back(far[i].second);
  }
  return out;
}

/* Above 0: nearer to a. From -1 to 1. */
double nearer(const Learnt &l, const float *x, int a, int b, const std::vector<int> &features, int n) {
  double to_a = 0, to_b = 0;
  for (int i = 0; i < n && i < static_cast<int>(features.size()); i++) {
    const auto k = static_cast<size_t>(features[static_cast<size_t>(i)]);
    const double p = x[k] - l.mean[static_cast<size_t>(a)][k], q = x[k] - l.mean[static_cast<size_t>(b)][k];
    to_a += std::log1p(p * p / l.variance[k]); /* of heavy tails: one feature that is far off counts little */
    to_b += std::log1p(q * q / l.variance[k]);
  }
  return to_a + to_b > 0 ? (to_b - to_a) / (to_a + to_b) : 0;
}

struct Way {
  int family, size;
};

/* The way that does best on the draws that are learnt from, each left out in turn. */
Way best_way(const Data &d, const std::vector<Learnt> &inner, const std::vector<int> &draws, int a, int b) {
  std::array<std::array<double, N_SIZES>, FAMILIES> score{};
  for (size_t i = 0; i < draws.size(); i++) {
    const auto features = ranked(d, inner[i], a, b);
    for (int f = 0; f < FAMILIES; f++)
      for (int s = 0; s < N_SIZES; s++) {
        const auto &mine = features[static_cast<size_t>(f)];
        const double p = nearer(inner[i], d.at(a, draws[i]), a, b, mine, SIZES[s]),
                     q = -nearer(inner[i], d.at(b, draws[i]), a, b, mine, SIZES[s]);
        score[static_cast<size_t>(f)][static_cast<size_t>(s)] += (p > 0) + (q > 0) + 0.1 * (p + q);
      }
  }
  Way best = {0, 0};
  double most = -1;
  for (int f = 0; f < FAMILIES; f++)
    for (int s = 0; s < N_SIZES; s++)
      if (score[static_cast<size_t>(f)][static_cast<size_t>(s)] > most) {
        most = score[static_cast<size_t>(f)][static_cast<size_t>(s)];
        best = {f, s};
      }
  return best;
}

}  // namespace

int main() {
  Data d;
  if (!read(d) || d.candidates < 2 || d.draws < 3 || d.names.empty()) {
    std::fprintf(stderr, "ni-observer: two candidates and three draws of each, with features, are needed\n");
    return 1;
  }
  std::vector<std::vector<int>> named(
      static_cast<size_t>(d.candidates));                       // of each candidate's left-out jobs
  std::vector<int> lost(static_cast<size_t>(d.candidates), 0);  // duels of the planted one
  std::map<std::string, double> told_by;
  for (int out = 0; out < d.draws; out++) {
    std::vector<int> rest;
    std::vector<Learnt> inner;
    for (int i = 0; i < d.draws; i++)
      if (i != out) {
        rest.push_back(i);
        inner.emplace_back(d, out, i);
      }
    const Learnt l(d, out, out);
    const auto n = static_cast<size_t>(d.candidates);
    std::vector<std::vector<int>> wins(n, std::vector<int>(n, 0));  // [job of][candidate]
    for (int a = 0; a < d.candidates; a++)
      for (int b = a + 1; b < d.candidates; b++) {
        const Way way = best_way(d, inner, rest, a, b);
        const auto features = ranked(d, l, a, b)[static_cast<size_t>(way.family)];
        for (int job = 0; job < d.candidates; job++) {
          const bool for_a = nearer(l, d.at(job, out), a, b, features, SIZES[way.size]) > 0;
          wins[static_cast<size_t>(job)][static_cast<size_t>(for_a ? a : b)]++;
          if (job == 0 && a == 0 && !for_a)
            lost[static_cast<size_t>(b)]++;
        }
        for (int i = 0; a == 0 && i < 3 && i < static_cast<int>(features.size()); i++) {
          const auto k = static_cast<size_t>(features[static_cast<size_t>(i)]);
          told_by[std::to_string(b) + ": " + d.names[k]] += std::sqrt(l.apart(a, b, k)) / d.draws;
        }
      }
    for (int job = 0; job < d.candidates; job++) {
      const auto &w = wins[static_cast<size_t>(job)];
      const auto most = std::max_element(w.begin(), w.end());
      named[static_cast<size_t>(job)].push_back(*most == d.candidates - 1 ? static_cast<int>(most - w.begin())
                                                                          : -1);
    }
  }
  std::printf("{\"draws\":%d,\"features\":%zu,\"named\":[", d.draws, d.names.size());
  for (int c = 0; c < d.candidates; c++) {
    std::printf("%s[", c ? "," : "");
    for (size_t i = 0; i < named[static_cast<size_t>(c)].size(); i++)
      std::printf("%s%d", i ? "," : "", named[static_cast<size_t>(c)][i]);
    std::printf("]");
  }
  std::printf("],\"lost\":[");
  for (int c = 0; c < d.candidates; c++)
    std::printf("%s%d", c ? "," : "", lost[static_cast<size_t>(c)]);
  std::printf("],\"told_by\":{");
  bool first = true;
  for (const auto &[name, far] : told_by) {
    std::printf("%s\"%s\":%.2f", first ? "" : ",", name.c_str(), far);
    first = false;
  }
  std::printf("}}\n");
  return 0;
}
