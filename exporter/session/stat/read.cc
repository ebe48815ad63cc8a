/* From the bytes of a session's file to series. */
#define SIMDJSON_EXCEPTIONS 0
#include <simdjson.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <unistd.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wshadow" /* a function named as its struct, in C */
extern "C" {
#include "exporter/base/array.h"
#include "exporter/base/process/as_user.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/input/filters.h"
#include "stat.h"
}
#pragma GCC diagnostic pop

namespace dom = simdjson::dom;

namespace {

struct reading {
  ni_stat_file *file = nullptr;
  std::unordered_map<std::string, size_t> known[NI_STAT_KINDS];
  std::vector<size_t> place[NI_STAT_KINDS]; /* entities of the frame before, by place: mostly they stay */
  dom::parser parser;
  int64_t first_us = 0, last_us = 0;
  size_t series = 0, slots = NI_STAT_SLOTS;
};

double number(dom::element e) {
  std::string_view t;
  double v = NAN;
  if (!e.get(t)) {
    if (std::from_chars(t.data(), t.data() + t.size(), v).ec != std::errc())
      v = NAN;
  } else if (e.get(v))
    v = NAN;
  return v > -1e18 && v < 1e18 ? v : NAN;
}

/* SIZE_MAX: no memory, or too many. */
size_t entity(reading &r, int kind, size_t place, std::string_view name) {
  ni_stat_list &l = r.file->kind[kind];
  auto &at = r.place[kind];
  if (place < at.size() && at[place] < l.n && name == l.item[at[place]].name)
    return at[place];
  char safe[1024];
  ni_safe_text(std::string(name.substr(0, 300)).c_str(), safe, sizeof safe);
  auto [found, fresh] = r.known[kind].try_emplace(safe, l.n);
  if (fresh) {
    ni_stat_entity e = {strdup(safe),
                        static_cast<ni_stat_series *>(calloc(NI_STAT_FIELDS, sizeof(ni_stat_series)))};
    if (!e.name || !e.series || l.n >= NI_STAT_ENTITIES_MAX || !ni_array_room(l.item, l.n, l.cap)) {
      free(e.name), free(e.series);
      r.known[kind].erase(found);
      return SIZE_MAX;
    }
    l.item[l.n++] = e;
  }
  if (place >= at.size())
    at.resize(place + 1, SIZE_MAX);
  return at[place] = found->second;
}

void put(reading &r, ni_stat_series &s, double v) {
  if (std::isnan(v))
    return;
  uint64_t frame = r.file->frames, slot = frame / r.file->step;
  if (s.n == 0)
    s.min = s.max = v, r.series++;
  s.min = std::fmin(s.min, v), s.max = std::fmax(s.max, v), s.sum += v, s.n++;
  while (s.slots <= slot) {
    if (!ni_array_room(s.slot, s.slots, s.cap))
      return;
    s.slot[s.slots++] = {NAN, NAN, 0};
  }
  ni_stat_slot &at = s.slot[slot];
  if (frame % r.file->step == 0)
    at.sample = static_cast<float>(v);
  at.mean = at.n ? static_cast<float>(at.mean + (v - at.mean) / (at.n + 1.0)) : static_cast<float>(v);
  at.n++;
}

/* Slots are twice as long from now on. Many series have fewer of them, so that all have room. */
void halve(ni_stat_file *f) {
  for (auto &l : f->kind)
    for (size_t i = 0; i < l.n; i++)
      for (size_t k = 0; k < NI_STAT_FIELDS; k++) {
        ni_stat_series &s = l.item[i].series[k];
        for (size_t a = 0; a < s.slots; a += 2) {
          ni_stat_slot one = s.slot[a], two = a + 1 < s.slots ? s.slot[a + 1] : ni_stat_slot{NAN, NAN, 0};
          uint32_t n = one.n + two.n;
          double sum = (one.n ? one.mean * one.n : 0.0) + (two.n ? two.mean * two.n : 0.0);
          s.slot[a / 2] = {one.sample, n ? static_cast<float>(sum / n) : NAN, n};
        }
        s.slots = (s.slots + 1) / 2;
      }
  f->step *= 2;
}

/* Arrays with a number for each member of another array. */
void take_arrays(reading &r, dom::object frame, int kind, const char *ids) {
  dom::array names, values;
  std::string_view name;
  bool named = !frame[ids].get(names);
  if (!named && kind != NI_STAT_CLIENT)
    return;
  std::vector<size_t> of;
  if (named)
    for (dom::element e : names)
      of.push_back(e.get(name) ? SIZE_MAX : entity(r, kind, of.size(), name));
  for (size_t k = 0; k < NI_STAT_FIELDS; k++) {
    const ni_stat_field &f = ni_stat_fields[k];
    if (f.kind != kind || frame[f.key].get(values))
      continue;
    double scale = r.file->gsprof && f.gsprof > 0 ? f.gsprof : 1;
    size_t i = 0;
    for (dom::element e : values) {
      if (i >= of.size() && named)
        break;
      /* gsprof's have no names */
      if (i >= of.size())
        of.push_back(entity(r, kind, i, "client " + std::to_string(i + 1)));
      if (of[i] != SIZE_MAX)
        put(r, r.file->kind[kind].item[of[i]].series[k], number(e) * scale);
      i++;
    }
  }
}

/* Objects: jobs, and the NVLink rates of GPUs. */
void take_objects(reading &r, dom::object frame, int kind, const char *list, const char *id,
                  const char *more_id) {
  dom::array all;
  if (frame[list].get(all))
    return;
  size_t place = 0;
  for (dom::element e : all) {
    std::string_view name, more;
    dom::object o;
    dom::element v;
    if (e.get(o) || o[id].get(name))
      continue;
    std::string full(name);
    if (more_id && !o[more_id].get(more))
      full.append(" ").append(more);
    size_t at = entity(r, kind, place++, full);
    for (size_t k = 0; at != SIZE_MAX && k < NI_STAT_FIELDS; k++)
      if (ni_stat_fields[k].kind == kind && !o[ni_stat_fields[k].key].get(v))
        put(r, r.file->kind[kind].item[at].series[k], number(v));
  }
}

bool take_frame(reading &r, std::string &text) {
  dom::element doc, id;
  dom::object frame;
  std::string_view time;
  ni_when when;
  text.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  if (r.parser.parse(text.data(), text.size(), false).get(doc) || doc.get(frame) || frame["frame_id"].get(id))
    return false;
  while (r.file->frames / r.file->step >= r.slots)
    halve(r.file);
  take_arrays(r, frame, NI_STAT_GPU, "gpu_id");
  take_arrays(r, frame, NI_STAT_CLIENT, "client_id");
  take_arrays(r, frame, NI_STAT_NIC, "nic_id");
  take_objects(r, frame, NI_STAT_GPU, "gpu_bandwidth", "id1", nullptr);
  take_objects(r, frame, NI_STAT_JOB, "jobs", "host", "job_id");
  if (!frame["time"].get(time)) {
    std::string t(time.substr(0, 39));
    if (!r.file->frames)
      ni_safe_text(t.c_str(), r.file->first, sizeof r.file->first);
    if (ni_parse_when((t + (t.empty() || t.back() == 'Z' ? "" : "Z")).c_str(), &when) == 0)
      r.last_us = when.us;
    if (!r.first_us)
      r.first_us = r.last_us;
  }
  r.file->frames++;
  r.slots = r.series > 1 << 20 ? 16 : r.series > 1 << 16 ? 128 : NI_STAT_SLOTS;
  return true;
}

/*
 * Where the bytes are in the document. Frames are the objects in the array of the key "frames" of the
 * outermost object.
 */
struct place {
  unsigned depth = 0;
  /* lists: the array of frames was there */
  bool text = false, escape = false, list = false, frame = false, lists = false;
  /* the last two texts of the outermost object, of this member */
  std::string key, word;
  std::string one; /* the frame so far */
};

/* A member of the outermost object: ours say their form and name before the frames. */
void take_head(reading &r, place &p) {
  if (p.key == "schema" && p.word.compare(0, 23, "nccl-inspector-session-") == 0)
    r.file->gsprof = false;
  if (p.key == "session_name" && !p.word.empty())
    ni_safe_text(p.word.c_str(), r.file->name, sizeof r.file->name);
  p.key.clear(), p.word.clear();
}

void take_bracket(reading &r, place &p, char c, const char *here, const char *&from) {
  bool opens = c == '{' || c == '[';
  if (opens) {
    if (p.depth == 1)
      p.list = c == '[' && p.word == "frames", p.lists |= p.list;
    if (p.depth == 2 && c == '{' && p.list)
      p.frame = true, from = here;
    p.depth++;
    return;
  }
  if (p.depth > 0)
    p.depth--;
  if (p.depth != 2 || !p.frame)
    return;
  p.one.append(from, static_cast<size_t>(here + 1 - from));
  if (!take_frame(r, p.one))
    r.file->damaged++;
  p.frame = false;
  p.one.clear();
}

/* False: a frame is too large. */
bool take_bytes(reading &r, place &p, const char *text, size_t n) {
  const char *from = text;
  for (const char *at = text; at < text + n; at++) {
    char c = *at;
    bool outer = p.depth == 1;
    if (p.text) {
      if (p.escape)
        p.escape = false;
      else if (c == '\\')
        p.escape = true;
      else if (c == '"')
        p.text = false;
      if (p.text && outer && p.word.size() < 200)
        p.word += c;
    } else if (c == '"') {
      p.text = true;
      if (outer)
        p.key.swap(p.word), p.word.clear();
    } else if (c == '{' || c == '[' || c == '}' || c == ']') {
      take_bracket(r, p, c, at, from);
    } else if (c == ',' && outer)
      take_head(r, p);
  }
  if (p.frame)
    p.one.append(from, static_cast<size_t>(text + n - from));
  return p.one.size() <= NI_STAT_FRAME_MAX;
}

/* The newest file against those before. */
void tell_apart(ni_stat_files *all) {
  ni_stat_file &n = all->file[all->n - 1];
  auto label = [](ni_stat_file &f, const std::string &text) {
    ni_safe_text(text.c_str(), f.label, sizeof f.label);
  };
  auto place = [](const ni_stat_file &f) {
    std::string path(f.path);
    return path.size() < sizeof f.label - 8 ? path : "..." + path.substr(path.size() - (sizeof f.label - 12));
  };
  size_t same = 0;
  label(n, n.name);
  for (size_t i = 0; i + 1 < all->n; i++) {
    ni_stat_file &f = all->file[i];
    if (strcmp(f.name, n.name) != 0)
      continue;
    same += place(f) == place(n);
    if (strcmp(f.label, f.name) == 0)
      label(f, place(f));
    label(n, place(n) + (same ? " (" + std::to_string(same + 1) + ")" : ""));
  }
}

}  // namespace

extern "C" int ni_stat_add_stream(ni_stat_files *all, FILE *f, const char *path, char *why, size_t cap) {
  ni_stat_file file = {};
  const char *slash = strrchr(path, '/');
  bool small = true;
  reading r;
  place p;
  std::vector<char> bytes(1 << 20);
  size_t n;
  file.gsprof = true, file.step = 1;
  file.path = strdup(path);
  ni_safe_text(slash ? slash + 1 : path, file.name, sizeof file.name);
  r.file = &file;
  *why = 0;
  while (small && (n = fread(bytes.data(), 1, bytes.size(), f)) > 0)
    small = take_bytes(r, p, bytes.data(), n);
  int e = ferror(f) ? (errno ? -errno : -EIO) : 0;
  file.seconds = r.first_us ? static_cast<double>(r.last_us - r.first_us) / 1e6 : NAN;
  if (e)
    snprintf(why, cap, "%s", strerror(-e));
  else if (!file.path || !ni_array_room(all->file, all->n, all->cap))
    e = -ENOMEM, snprintf(why, cap, "no memory");
  else if (!small)
    e = -EFBIG, snprintf(why, cap, "a frame is larger than %d MiB", NI_STAT_FRAME_MAX >> 20);
  else if (!file.frames && (!p.lists || p.depth || file.damaged))
    e = -EINVAL, snprintf(why, cap, "it has no frames: it is no session's file");
  else if (p.depth)
    snprintf(why, cap, "it is torn after %llu frames", static_cast<unsigned long long>(file.frames));
  else if (file.damaged)
    snprintf(why, cap, "%llu damaged frames are left out", static_cast<unsigned long long>(file.damaged));
  if (e)
    ni_stat_clear(&file);
  else
    all->file[all->n++] = file, tell_apart(all);
  return e;
}

extern "C" int ni_stat_add(ni_stat_files *all, const char *path, char *why, size_t cap) {
  int e = 0, fd = ni_named_open(path);
  FILE *f = fd < 0 ? nullptr : fdopen(fd, "r");
  if (!f)
    e = fd < 0 ? fd : -errno;
  if (!f && fd >= 0)
    close(fd);
  if (!f)
    return snprintf(why, cap, "%s", strerror(-e)), e;
  e = ni_stat_add_stream(all, f, path, why, cap);
  fclose(f);
  return e;
}
