#define SIMDJSON_EXCEPTIONS 0
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <simdjson.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "exporter/base/array.h"
extern "C" {
#include "exporter/base/out_file.h"
#include "exporter/base/text/json_write.h"
#include "folder.h"
}

namespace dom = simdjson::dom;
using std::string;

namespace {

enum : off_t { SYNC_EACH = 32 << 20 };
enum : size_t {
  LINE_MOST = (size_t)NI_STORE_HELD_MAX + (1 << 20),
  LATE_MOST = 4 << 20,
  LATE_BEHIND = 63,
  CHUNK = 1 << 20,
  STATE_MOST = 1 << 16
};

struct descriptor {
  int fd;
  descriptor(int dir, const char *id, const char *name) : fd(ni_session_file(dir, id, name, O_RDONLY)) {
    if (fd < 0)
      errno = -fd;
  }
  ~descriptor() {
    if (fd >= 0)
      close(fd);
  }
};

/*
 * What is open, if it is of that kind, ours or of who has the folder, and nobody else's to write; else it is
 * closed, and -errno.
 */
int checked(int dir, int fd, mode_t kind) {
  struct stat of = {}, is = {};
  int e = fd < 0 || fstat(dir, &of) < 0 || fstat(fd, &is) < 0 ? -errno : 0;
  if (e == 0 && (is.st_mode & S_IFMT) != kind)
    e = -EINVAL;
  bool ours = is.st_uid == of.st_uid || is.st_uid == geteuid(); /* a folder may be shared by group */
  if (e == 0 && (!ours || (is.st_mode & S_IWOTH)))
    e = -EPERM;
  if (e && fd >= 0)
    close(fd);
  return e ? e : fd;
}

/* Whole lines, each with room behind it for the parser. */
struct unreadable {
  int error;
};

struct lines {
  int fd;
  std::vector<char> room;
  size_t from = 0, to = 0;
  off_t at = 0, until = 0; /* of the file: where the next line begins; 0: its end */
  bool next(char *&line, size_t &n) {
    bool skip = false;
    for (size_t looked = from;;) {
      char *end = to > looked ? (char *)memchr(&room[looked], '\n', to - looked) : nullptr;
      if (end) {
        line = &room[from];
        n = (size_t)(end - line);
        *end = 0;
        at += (off_t)n + 1;
        from += n + 1;
        if (until && at > until)
          return false;
        if (!skip)
          return true;
        skip = false, looked = from;
        continue;
      }
      if (to - from > LINE_MOST)
        at += (off_t)(to - from), from = to, skip = true;
      if (from)
        memmove(room.data(), &room[from], to - from), to -= from, from = 0;
      looked = to;
      if (room.size() < to + CHUNK + simdjson::SIMDJSON_PADDING)
        room.resize(2 * to + CHUNK + simdjson::SIMDJSON_PADDING);
      ssize_t got = read(fd, &room[to], room.size() - simdjson::SIMDJSON_PADDING - to);
      if (got < 0 && errno == EINTR)
        continue;
      if (got < 0)
        throw unreadable{errno}; /* what lies behind is no torn end */
      if (got == 0)
        return false;
      to += (size_t)got;
    }
  }
};

const char *const id_keys[NI_GROUPS] = {"gpu_id", "client_id", "nic_id"};

/*
 * The head of a frame's line. from: where its own text begins, as NAME.json has it but for a bracket; 0: it
 * is no frame's.
 */
int head_of(const char *line, int64_t &tick, uint64_t &number) {
  int from = 0, end = 0;
  (void)!sscanf(line,
                "{\"session_id\":\"%*36[0-9a-f-]\",\"session_name\":\"%*131[^\"\\]\",\"tick_ns\":%" SCNd64
                ",%n\"frame_id\":%" SCNu64 ",%n",
                &tick, &from, &number, &end);
  return end ? from : 0;
}

struct quoted { /* a text as JSON has it */
  string text;
  const char *operator()(const char *s) {
    char c[8];
    for (text = "\""; *s;)
      text.append(c, ni_json_char(c, &s));
    return (text += '"').c_str();
  }
  const char *operator()(dom::element e) {
    const char *s;
    return (*this)(e.get_c_str().get(s) ? "" : s);
  }
};

struct late_sample {
  dom::parser json;
  dom::object root;
  std::vector<size_t> map[NI_GROUPS]; /* its columns */
};
struct late_place {
  int64_t tick;
  off_t at;
  size_t n;
};

struct merger {
  ni_past &p;
  FILE *to;
  bool merge;
  int late_fd;
  dom::parser json{};
  std::vector<late_place> late{};
  std::vector<size_t> map[NI_GROUPS]{};
  std::vector<std::unique_ptr<late_sample>> now{}; /* of this frame */
  quoted text{};
  string out{};

  size_t column(ni_group g, dom::element e) {
    int64_t c = ni_column_claim(&p.of[g], text(e), 1);
    if (c < 0)
      throw std::bad_alloc();
    return (size_t)c;
  }
  /*
   * Of a late sample: the one behind so many of the same text, as in the frames. Those of a hostile file are
   * few.
   */
  size_t late_column(ni_group g, dom::element e, uint64_t behind) {
    const char *id = text(e);
    int64_t c;
    for (uint32_t k = 0, most = (uint32_t)std::min(behind, (uint64_t)LATE_BEHIND);
         (c = ni_column_find(&p.of[g], id, most)) < 0 && k <= most; k++)
      if (ni_column_claim(&p.of[g], id, 1) < 0)
        throw std::bad_alloc();
    return (size_t)c;
  }
  void note_seq(size_t client, dom::element e) {
    uint64_t seq;
    size_t had = p.cap_seq;
    if (client >= had) {
      if (!ni_array_more(&p.seq, &p.cap_seq, client + 1, sizeof *p.seq))
        throw std::bad_alloc();
      memset(p.seq + had, 0, (p.cap_seq - had) * sizeof *p.seq);
    }
    if (!e.get(seq))
      p.seq[client] = std::max(p.seq[client], seq);
  }

  /* How many late samples there are, and where they lie. */
  void read_late(bool places) {
    lines in{late_fd, {}};
    in.until = p.late_until;
    char *line;
    size_t n;
    while (late_fd >= 0 && late.size() < LATE_MOST && in.next(line, n)) {
      int64_t tick;
      dom::array ids;
      dom::object o;
      if (json.parse(line, n, false).get(o) || o["tick_ns"].get(tick) || o["client_id"].get(ids))
        continue;
      p.late++;
      if (places)
        late.push_back({tick, in.at - (off_t)n - 1, n});
    }
    std::stable_sort(late.begin(), late.end(), [](auto &a, auto &b) { return a.tick < b.tick; });
  }

  void take_late(int64_t tick) {
    now.clear();
    auto first =
        std::lower_bound(late.begin(), late.end(), tick, [](auto &a, int64_t t) { return a.tick < t; });
    for (; first != late.end() && first->tick == tick; ++first) {
      std::vector<char> room(first->n + simdjson::SIMDJSON_PADDING);
      auto s = std::make_unique<late_sample>();
      if (pread(late_fd, room.data(), first->n, first->at) != (ssize_t)first->n)
        continue;
      if (s->json.parse(room.data(), first->n, false).get(s->root))
        continue;
      for (int g = 0; g < NI_GROUPS; g++) {
        dom::array ids, behind;
        uint64_t n;
        std::vector<uint64_t> others; /* none in lines of the release before */
        if (g != NI_CLIENTS && !s->root[g == NI_GPUS ? "gpu_behind" : "nic_behind"].get(behind))
          for (dom::element e : behind)
            others.push_back(e.get(n) ? 0 : n);
        if (!s->root[id_keys[g]].get(ids))
          for (dom::element e : ids) {
            size_t i = s->map[g].size();
            s->map[g].push_back(late_column((ni_group)g, e, i < others.size() ? others[i] : 0));
          }
      }
      now.push_back(std::move(s));
    }
  }

  void put(dom::element e) {
    if (e.is_string())
      out += text(e);
    else
      out += simdjson::minify(e);
  }

  /* The array of a key, a value for each column: late ones before the frame's own. */
  void values(const char *key, ni_group g, const char *none, int sum, dom::array own, bool copy) {
    bool seq = !strcmp(key, "client_seq");
    if (copy && sum < 0 && !seq)
      return;
    size_t n = p.of[g].n;
    std::vector<dom::element> slot(n);
    std::vector<bool> has(n);
    auto fill = [&](dom::array a, const std::vector<size_t> &at) {
      size_t i = 0;
      for (dom::element e : a)
        if (i < at.size())
          slot[at[i]] = e, has[at[i++]] = true;
    };
    fill(own, map[g]);
    for (auto &s : now) {
      dom::array a;
      if (!s->root[key].get(a))
        fill(a, s->map[g]);
    }
    if (sum >= 0 && !ni_sums_room(&p.sums, g, n))
      throw std::bad_alloc();
    for (size_t i = 0; i < n; i++) {
      double v;
      const char *s;
      if (has[i] && seq)
        note_seq(i, slot[i]);
      if (has[i] && sum >= 0 &&
          (!slot[i].get(v) || (!slot[i].get_c_str().get(s) && (v = strtod(s, nullptr), true))) && v > -1e15 &&
          v < 1e15)
        p.sums.of[g][i].sum[sum] += v, p.sums.of[g][i].n[sum]++;
      if (copy)
        continue;
      if (i)
        out += ',';
      if (has[i])
        put(slot[i]);
      else
        out += none;
    }
  }

  /* A list of what there is at the moment: of those who came late what they say. */
  void list(const char *key, dom::array own) {
    bool any = false, jobs = !strcmp(key, "jobs");
    std::vector<string> theirs;
    auto add = [&](dom::element e) {
      if (any)
        out += ',';
      any = true;
      put(e);
    };
    for (auto &s : now) {
      dom::array ids;
      if (!s->root[jobs ? "client_id" : "gpu_id"].get(ids))
        for (dom::element e : ids)
          theirs.push_back(text(e));
      if (jobs && !theirs.empty()) { /* a client's id begins with its host */
        string &t = theirs.back();
        t = t.substr(0, t.rfind('_')) + '"';
      }
    }
    for (dom::element e : own) {
      dom::element who;
      if (e[jobs ? "host" : "id1"].get(who) ||
          std::find(theirs.begin(), theirs.end(), text(who)) == theirs.end())
        add(e);
    }
    for (auto &s : now) {
      dom::array a;
      if (!s->root[key].get(a))
        for (dom::element e : a)
          add(e);
    }
  }

  /* false: this is no frame. */
  bool frame(const char *line, size_t n) {
    int64_t tick;
    uint64_t number;
    dom::object o;
    simdjson::error_code wrong = simdjson::SUCCESS;
    int from = head_of(line, tick, number);
    if (!from || number <= p.last || tick <= p.tick_ns ||
        (wrong = json.parse(line, n, false).get(o)) != simdjson::SUCCESS) {
      if (from && wrong == simdjson::MEMALLOC)
        throw std::bad_alloc();
      return false;
    }
    p.last = number, p.tick_ns = tick, p.frames++;
    bool copy = true;
    for (int g = 0; g < NI_GROUPS; g++) {
      dom::array ids;
      ni_columns_release(&p.of[g]);
      map[g].clear();
      if (o[id_keys[g]].get(ids))
        continue;
      for (dom::element e : ids) {
        map[g].push_back(column((ni_group)g, e));
        if (map[g].back() + 1 != map[g].size())
          p.mixed = true, copy = !merge;
      }
    }
    now.clear();
    if (merge)
      take_late(tick);
    for (int g = 0; g < NI_GROUPS; g++)
      copy = copy && (!merge || map[g].size() == p.of[g].n) && now.empty();
    out = "{\"frame_id\":" + std::to_string(number);
    for (auto field : o) {
      string key(field.key);
      const char *none;
      int sum;
      dom::array own;
      bool is_array = !field.value.get(own);
      ni_group g = ni_frame_key(key.c_str(), &none, &sum);
      size_t id = (size_t)(std::find(id_keys, id_keys + NI_GROUPS, key) - id_keys);
      bool columns = is_array && g < NI_GROUPS, ids = is_array && id < NI_GROUPS;
      const bool is_of_session = key == "session_id" || key == "session_name";
      const bool is_of_frame = key == "tick_ns" || key == "frame_id";
      if (is_of_session || is_of_frame || (copy && !columns))
        continue;
      if (!copy)
        out += ',' + string(text(key.c_str())) + ':';
      bool now_list = is_array && (key == "jobs" || key == "gpu_bandwidth");
      if (!columns && !ids && !now_list)
        put(field.value);
      else if (!copy)
        out += '[';
      if (columns)
        values(key.c_str(), g, none, sum, own, copy);
      if (now_list)
        list(key.c_str(), own);
      for (size_t i = 0; ids && i < p.of[id].n; i++)
        out += (i ? "," : "") + string(p.of[id].at[i].id);
      if (!copy && (columns || ids || now_list))
        out += ']';
    }
    out += '}';
    if (!to)
      return true;
    if (p.frames > 1)
      fputs(",\n", to);
    if (copy)
      putc('{', to), fwrite(line + from, 1, n - (size_t)from, to);
    else
      fwrite(out.data(), 1, out.size(), to);
    return true;
  }
};

}  // namespace

extern "C" int ni_session_folder(int dir, const char *id) {
  return checked(dir, openat(dir, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), S_IFDIR);
}

extern "C" int ni_session_file(int dir, const char *id, const char *name, int how) {
  int folder = ni_session_folder(dir, id);
  if (folder < 0)
    return folder;
  int fd = checked(folder, openat(folder, name, how | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600),
                   S_IFREG);
  close(folder);
  return fd;
}

extern "C" int ni_store_file(int dir, const char *name) {
  return checked(dir, openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), S_IFREG);
}

/*
 * To the disk step by step: where GB wait for it, whoever syncs a small file on it waits for all of them. How
 * far it came.
 */
static off_t sync_steps(FILE *to, off_t from) {
  off_t at = ftello(to);
  if (at - from < SYNC_EACH || fflush(to))
    return from;
  (void)sync_file_range(fileno(to), from, at - from,
                        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  return at;
}

int ni_past_read(struct ni_past *p, int dir, const char *id, bool merge, FILE *to) try {
  descriptor frames(dir, id, "frames.jsonl"), late(dir, id, "late.jsonl");
  if (frames.fd < 0)
    return errno == ENOENT ? 0 : -errno;
  merger m{*p, to, merge, late.fd};
  lines in{frames.fd, {}};
  in.until = p->until;
  char *line;
  size_t n;
  if (merge)
    m.read_late(true);
  off_t synced = to ? ftello(to) : -1;
  while (in.next(line, n)) {
    if (synced >= 0)
      synced = sync_steps(to, synced);
    if (m.frame(line, n))
      p->good = in.at;
    else
      p->bad++;
    if (to && ferror(to))
      return errno ? -errno : -EIO;
    if (p->quit && __atomic_load_n((const bool *)p->quit, __ATOMIC_RELAXED))
      return -EINTR;
  }
  if (!merge)
    m.read_late(false);
  return 0;
} catch (const std::bad_alloc &) {
  return -ENOMEM;
} catch (const unreadable &u) {
  return -u.error;
}

/* Whole lines from the end, the last one first, in a window that grows where a line does not fit. */
int ni_past_last(struct ni_past *p, int dir, const char *id, bool count_late) try {
  descriptor frames(dir, id, "frames.jsonl"), late(dir, id, count_late ? "late.jsonl" : "");
  struct stat st;
  if (frames.fd < 0 || fstat(frames.fd, &st) < 0)
    return errno == ENOENT ? 0 : -errno;
  merger m{*p, nullptr, false, late.fd};
  std::vector<char> room;
  if (count_late)
    m.read_late(false);
  off_t end = st.st_size;
  for (size_t window = CHUNK; end > 0;) {
    size_t n = std::min(window, (size_t)end), to = n;
    room.resize(n + simdjson::SIMDJSON_PADDING);
    ssize_t got = pread(frames.fd, room.data(), n, end - (off_t)n);
    if (got != (ssize_t)n)
      return got < 0 ? -errno : -EIO;
    while (char *stop = (char *)memrchr(room.data(), '\n', to)) {
      char *before = (char *)memrchr(room.data(), '\n', (size_t)(stop - room.data())),
           *line = before ? before + 1 : room.data();
      if (!before && n < (size_t)end && n <= LINE_MOST)
        break; /* its beginning is not here */
      *stop = 0;
      if (m.frame(line, (size_t)(stop - line))) {
        p->good = end - (off_t)n + (stop - room.data()) + 1;
        p->frames = 0;
        ni_sums_free(&p->sums);
        return 0;
      }
      to = (size_t)(line - room.data());
    }
    if (to == n && n < (size_t)end && n <= LINE_MOST)
      window *= 2;
    else
      end -= (off_t)(n - (to < n ? to : 0));
  }
  return 0;
} catch (const std::bad_alloc &) {
  return -ENOMEM;
}

int ni_past_copy(int dir, const char *id, off_t from, off_t until, int part, off_t *at) try {
  descriptor frames(dir, id, "frames.jsonl");
  if (frames.fd < 0 || lseek(frames.fd, from, SEEK_SET) < 0)
    return -errno;
  lines in{frames.fd, {}};
  in.at = from, in.until = until;
  string out;
  char *line;
  size_t n;
  auto flush = [&] {
    int e = ni_write_all(part, out.data(), out.size(), *at);
    *at += (off_t)out.size();
    return out.clear(), e;
  };
  while (from < until && in.next(line, n)) {
    int64_t tick;
    uint64_t number;
    int own = head_of(line, tick, number);
    if (own)
      out.append(",\n{").append(line + own, n - (size_t)own);
    if (out.size() > CHUNK)
      if (int e = flush())
        return e;
  }
  return flush();
} catch (const std::bad_alloc &) {
  return -ENOMEM;
} catch (const unreadable &u) {
  return -u.error;
}

void ni_past_free(struct ni_past *p) {
  for (auto &c : p->of) {
    for (size_t i = 0; i < c.n; i++)
      free(c.at[i].id);
    free(c.at);
  }
  ni_sums_free(&p->sums);
  free(p->seq);
  *p = {};
}

bool ni_session_name(const char *name) {
  size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._- ");
  return n > 0 && n <= 128 && !name[n] && *name != '.' && *name != ' ';
}

int ni_state_read(int dir, const char *id, struct ni_state *s) try {
  descriptor d(dir, id, "state.json");
  std::vector<char> room(STATE_MOST + simdjson::SIMDJSON_PADDING);
  ssize_t n = d.fd < 0 ? -1 : read(d.fd, room.data(), STATE_MOST);
  if (n < 0)
    return -errno;
  dom::parser json;
  dom::object o;
  *s = {};
  ni_session &e = s->session;
  auto text = [&](const char *key, char *to, size_t cap) {
    const char *t;
    if (!o[key].get_c_str().get(t))
      snprintf(to, cap, "%s", t);
  };
  if (json.parse(room.data(), (size_t)n, false).get(o))
    return -EINVAL;
  text("session_id", e.id, sizeof e.id);
  text("name", e.name, sizeof e.name);
  text("output_filename", e.file, sizeof e.file);
  text("error", e.error, sizeof e.error);
  bool bad = o["start_ns"].get(e.start_ns) || o["end_ns"].get(e.end_ns) || o["is_active"].get(e.active) ||
      o["frame_count"].get(e.frames) || o["frames_lost"].get(e.frames_lost) || o["late"].get(e.late) ||
      o["finishing"].get(e.finishing) || o["gsprof"].get(s->gsprof) || o["named"].get(s->named) ||
      o["period_ns"].get(s->period_ns);
  bool bad_file = strchr(e.file, '/') || strlen(e.file) < 6 || *e.file == '.';
  bool bad_times = s->period_ns <= 0 || e.start_ns <= 0 || e.end_ns < 0;
  if (bad || bad_file || bad_times || strcmp(e.id, id) || !ni_session_name(e.name))
    return -EINVAL;
  return 0;
} catch (const std::bad_alloc &) {
  return -ENOMEM;
}
