/* Pickle is a machine with a stack of values, marks in it and a memo; JSON is simdjson's DOM. */
#define SIMDJSON_EXCEPTIONS 0
#include <fcntl.h>
#include <simdjson.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "tree.h"

namespace dom = simdjson::dom;
using std::string_view;

enum kind : uint32_t { NONE, NUMBER, TEXT, LIST, DICT };

struct ni_node {
  kind is;
  int64_t number;   /* of a text its length, of a list or dict its place in lists */
  const char *text;
};

struct ni_tree {
  std::unique_ptr<char[]> bytes; /* with what simdjson wants behind them */
  size_t len = 0, values = 0;
  std::vector<ni_node> node;
  std::vector<std::vector<uint32_t>> list;
  dom::parser parser; /* has the texts of JSON */
  const char *why = nullptr;
  uint32_t root = 0;
};

namespace {

/* The first reason stays. */
void fail(ni_tree &t, const char *why) {
  if (!t.why) t.why = why;
}
void broken(ni_tree &t) { fail(t, "no Flight Recorder dump, or a part of one. Copy it once more"); }

bool room(ni_tree &t) { /* for one more value */
  if (++t.values > NI_TREE_VALUES) fail(t, "more than 8388608 values. Make the ring smaller (TORCH_NCCL_TRACE_BUFFER_SIZE)");
  return !t.why;
}

uint32_t add(ni_tree &t, kind is, int64_t number = 0, const char *text = nullptr) {
  if (!room(t)) return 0;
  if (is >= LIST) number = (int64_t)t.list.size(), t.list.emplace_back();
  t.node.push_back({is, number, text});
  return (uint32_t)t.node.size() - 1;
}

void put(ni_tree &t, uint32_t into, uint32_t item) {
  if (!t.why) t.list[(size_t)t.node[into].number].push_back(item);
}

uint32_t add_text(ni_tree &t, string_view s) { return add(t, TEXT, (int64_t)s.size(), s.data()); }

/* ---- JSON ---- */

uint32_t take(ni_tree &t, const dom::element &v) {
  dom::array list;
  dom::object dict;
  string_view text;
  int64_t number;
  bool truth;
  if (!v.get(text)) return add_text(t, text);
  if (!v.get(number)) return add(t, NUMBER, number);
  if (!v.get(truth)) return add(t, NUMBER, truth);
  uint32_t x = add(t, !v.get(list) ? LIST : !v.get(dict) ? DICT : NONE);
  if (v.is_array())
    for (dom::element item : list) put(t, x, take(t, item));
  if (v.is_object())
    for (auto field : dict) put(t, x, add_text(t, field.key)), put(t, x, take(t, field.value));
  return x;
}

void read_json(ni_tree &t) {
  dom::element root;
  auto bad = t.parser.allocate(t.len, 32);
  if (!bad) bad = t.parser.parse(t.bytes.get(), t.len, false).get(root);
  if (bad) fail(t, simdjson::error_message(bad));
  else t.root = take(t, root);
}

/* ---- pickle ---- */

struct machine {
  ni_tree &t;
  const unsigned char *at, *end;
  std::vector<uint32_t> stack, memo; /* memo: + 1 */
  std::vector<size_t> mark;

  const unsigned char *bytes(uint64_t n) {
    if (n > (uint64_t)(end - at)) return broken(t), nullptr;
    at += n;
    return at - n;
  }
  uint64_t number(unsigned n) {
    const unsigned char *b = bytes(n);
    uint64_t x = 0;
    for (unsigned i = 0; b && i < n; i++) x |= (uint64_t)b[i] << 8 * i;
    return x;
  }
  void push(uint32_t node) {
    if (!t.why) stack.push_back(node);
  }
  void text(uint64_t n) {
    auto *b = (const char *)bytes(n);
    if (b) push(add_text(t, {b, (size_t)n}));
  }
  void integer(uint64_t n) { /* the highest bit is the sign; what is wider than 64 bits is cut */
    const unsigned char *b = bytes(n);
    uint64_t x = b && n && b[n - 1] & 0x80 ? UINT64_MAX : 0;
    for (uint64_t i = 0; b && i < n && i < 8; i++) x = (x & ~(UINT64_C(0xff) << 8 * i)) | (uint64_t)b[i] << 8 * i;
    push(add(t, NUMBER, (int64_t)x));
  }
  size_t below(size_t n) { return n <= stack.size() ? stack.size() - n : SIZE_MAX; }
  size_t top_mark() {
    if (mark.empty()) return SIZE_MAX;
    size_t from = mark.back();
    mark.pop_back();
    return from;
  }
  void fill(size_t from, uint32_t into) { /* with what is on the stack from there on */
    for (size_t i = from; i < stack.size(); i++) put(t, into, stack[i]);
    stack.resize(from);
  }
  void extend(size_t from, kind is) {
    bool fits = from > 0 && from <= stack.size() && t.node[stack[from - 1]].is == is;
    if (is == DICT && (stack.size() - from) % 2) fits = false;
    if (fits) fill(from, stack[from - 1]);
    else broken(t);
  }
  void tuple(size_t from) {
    if (from > stack.size()) return broken(t);
    uint32_t x = add(t, LIST);
    if (!t.why) fill(from, x), push(x);
  }
  void keep(uint64_t i) {
    if (stack.empty() || i >= NI_TREE_VALUES) return broken(t);
    if (i >= memo.size()) memo.resize(i + 1);
    memo[i] = stack.back() + 1;
  }
  void recall(uint64_t i) {
    if (i < memo.size() && memo[i] && room(t)) push(memo[i] - 1);
    else broken(t);
  }
  /* false: the end, or not an opcode of data, which is told. */
  bool step(unsigned char op, char *why) {
    static const struct { unsigned char op; const char *name; } code[] = {
        {'c', "GLOBAL"}, {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"}, {'b', "BUILD"}, {0x81, "NEWOBJ"}};
    const char *name = "none of data";
    uint64_t x = number(memchr("\x80K\x8a\x8cqh", op, 6) ? 1 : op == 'M' ? 2 : memchr("JXrj", op, 4) ? 4 : memchr("G\x95", op, 2) ? 8 : 0);
    switch (op) {
      case 0x80: case 0x95: return true; /* protocol, frame */
      case '(': return mark.size() < NI_TREE_MARKS ? mark.push_back(stack.size()) : broken(t), true;
      case 'N': case 'G': return push(add(t, NONE)), true;
      case 0x88: case 0x89: return push(add(t, NUMBER, op == 0x88)), true;
      case 'K': case 'M': return push(add(t, NUMBER, (int64_t)x)), true;
      case 'J': return push(add(t, NUMBER, (int32_t)x)), true;
      case 0x8a: return integer(x), true;
      case 'X': case 0x8c: return text(x), true;
      case ']': case ')': return push(add(t, LIST)), true;
      case '}': return push(add(t, DICT)), true;
      case 'a': case 'e': return extend(op == 'a' ? below(1) : top_mark(), LIST), true;
      case 's': case 'u': return extend(op == 's' ? below(2) : top_mark(), DICT), true;
      case 't': return tuple(top_mark()), true;
      case 0x85: case 0x86: case 0x87: return tuple(below(op - 0x84u)), true;
      case 'q': case 'r': return keep(x), true;
      case 0x94: return keep(memo.size()), true;
      case 'h': case 'j': return recall(x), true;
      case '.': return stack.size() == 1 ? (void)(t.root = stack[0]) : broken(t), false;
      default: break;
    }
    for (auto &c : code)
      if (c.op == op) name = c.name;
    snprintf(why, 256, "opcode 0x%02x (%s) at byte %zu: of a pickle data alone is read, nothing is executed. Make JSON with "
             "torch's _dump_nccl_trace_json() and give that", op, name, (size_t)((const char *)at - t.bytes.get()) - 1);
    return fail(t, why), false;
  }
};

/* ---- files ---- */

/* Up to `most` bytes from the file's begin. A sentence, or NULL. */
const char *read_begin(ni_tree &t, const char *path, size_t most) {
  struct stat st;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  ssize_t n = fd < 0 || fstat(fd, &st) != 0 ? -1 : 0;
  bool plain = n == 0 && S_ISREG(st.st_mode);
  size_t want = !plain ? 0 : (size_t)st.st_size < most ? (size_t)st.st_size : most;
  t.bytes.reset(new char[want + simdjson::SIMDJSON_PADDING]());
  while (t.len < want && (n = read(fd, t.bytes.get() + t.len, want - t.len)) > 0) t.len += (size_t)n;
  const char *why = n < 0 ? strerror(errno) : !plain ? "no plain file" : nullptr;
  if (fd >= 0) close(fd);
  return why;
}

}  // namespace

bool ni_tree_is_dump(const char *path) {
  ni_tree t;
  if (read_begin(t, path, 128) || t.len < 3) return false;
  string_view b(t.bytes.get(), t.len);
  if (b[0] == '\x80') return b[1] >= 2 && b[1] <= 5 && (b[2] == '}' || (b[2] == '\x95' && t.len > 11 && b[11] == '}'));
  size_t at = b.find_first_not_of(" \n\r\t{"); /* the first key */
  for (string_view k : {"\"entries\"", "\"pg_config\"", "\"pg_status\"", "\"version\"", "\"nccl_", "\"rank\""})
    if (b[0] == '{' && at != b.npos && b.substr(at, k.size()) == k) return true;
  return false;
}

struct ni_tree *ni_tree_read(const char *path, char why[256]) try {
  std::unique_ptr<ni_tree> t(new ni_tree);
  fail(*t, read_begin(*t, path, NI_TREE_BYTES + 1));
  if (t->len > NI_TREE_BYTES) fail(*t, "longer than 256 MiB. Make the ring smaller (TORCH_NCCL_TRACE_BUFFER_SIZE)");
  if (!t->why && t->bytes[0] == '\x80') {
    auto *at = (const unsigned char *)t->bytes.get();
    machine m{*t, at, at + t->len, {}, {}, {}};
    for (bool more = true; more && !t->why;) more = m.at < m.end ? m.step(*m.at++, why) : (broken(*t), false);
  } else if (!t->why) {
    read_json(*t);
  }
  if (!t->why && t->node[t->root].is != DICT) broken(*t);
  if (t->why && t->why != why) snprintf(why, 256, "%s", t->why);
  return t->why ? nullptr : t.release();
} catch (const std::bad_alloc &) {
  return snprintf(why, 256, "%s", strerror(ENOMEM)), nullptr;
}

void ni_tree_free(struct ni_tree *t) { delete t; }
const struct ni_node *ni_tree_root(const struct ni_tree *t) { return &t->node[t->root]; }

size_t ni_tree_length(const struct ni_tree *t, const struct ni_node *x) {
  return x && x->is >= LIST ? t->list[(size_t)x->number].size() : 0;
}

const struct ni_node *ni_tree_at(const struct ni_tree *t, const struct ni_node *x, size_t i) {
  return i < ni_tree_length(t, x) ? &t->node[t->list[(size_t)x->number][i]] : nullptr;
}

const struct ni_node *ni_tree_get(const struct ni_tree *t, const struct ni_node *x, const char *key) {
  size_t n = x && x->is == DICT ? ni_tree_length(t, x) : 0;
  for (size_t i = 0; i + 1 < n && i < 128; i += 2) {
    const ni_node *k = ni_tree_at(t, x, i);
    if (k->is == TEXT && string_view(k->text, (size_t)k->number) == key) return ni_tree_at(t, x, i + 1);
  }
  return nullptr;
}

int64_t ni_node_number(const struct ni_node *x, int64_t otherwise) {
  char text[24], *end;
  if (x && x->is == NUMBER) return x->number;
  int64_t n = strtoll(ni_node_text(x, text, sizeof text), &end, 10);
  return end == text || *end ? otherwise : n;
}

const char *ni_node_bytes(const struct ni_node *x, size_t *n) {
  *n = x && x->is == TEXT ? (size_t)x->number : 0;
  return *n ? x->text : "";
}

const char *ni_node_text(const struct ni_node *x, char *out, size_t size) {
  size_t n;
  const char *text = ni_node_bytes(x, &n);
  out[n = string_view(text, n).copy(out, size - 1)] = 0;
  return out;
}
