/* Pickle is a machine with a stack of values, marks in it and a memo; JSON is simdjson's DOM. */
#define SIMDJSON_EXCEPTIONS 0
#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <string>
#include <vector>

extern "C" {
#include "exporter/base/text/json_numbers.h"
#include "exporter/input/ras/ras.h"
#include "exporter/input/whole.h"
#include "tree.h"
}

namespace dom = simdjson::dom;
using std::string_view;

enum kind { NONE, NUMBER, TEXT, LIST, DICT };

struct ni_node {
  kind is;
  int64_t number; /* of a text its length */
  const char *text;
  std::vector<ni_node *> *item;
};

struct ni_tree {
  std::unique_ptr<char, decltype(&free)> bytes{nullptr, free};
  std::deque<ni_node> node;
  std::deque<std::vector<ni_node *>> items;
  dom::parser parser; /* has the texts of JSON */
  size_t values = 0;
  const ni_node *root = nullptr;
};

namespace {

struct refusal {
  std::string why;
};

void require(bool good) {
  if (!good)
    throw refusal{"no Flight Recorder dump, or a part of one. Copy it once more"};
}

void count_value(ni_tree &t) {
  if (++t.values > NI_TREE_VALUES)
    throw refusal{"more than 8388608 values. Make the ring smaller (TORCH_NCCL_TRACE_BUFFER_SIZE)"};
}

ni_node *add_node(ni_tree &t, kind is, int64_t number = 0, const char *text = nullptr) {
  count_value(t);
  if (is >= LIST)
    t.items.emplace_back();
  t.node.push_back({is, number, text, is >= LIST ? &t.items.back() : nullptr});
  return &t.node.back();
}

ni_node *add_node(ni_tree &t, string_view s) { return add_node(t, TEXT, (int64_t)s.size(), s.data()); }

ni_node *convert_element(ni_tree &t, const dom::element &v) {
  dom::array list;
  dom::object dict;
  string_view text;
  int64_t number;
  bool truth;
  if (!v.get(text))
    return add_node(t, text);
  if (!v.get(number))
    return add_node(t, NUMBER, number);
  if (!v.get(truth))
    return add_node(t, NUMBER, truth);
  ni_node *x = add_node(t, !v.get(list) ? LIST : !v.get(dict) ? DICT : NONE);
  if (x->is == LIST)
    for (dom::element item : list)
      x->item->push_back(convert_element(t, item));
  if (x->is == DICT)
    for (auto field : dict)
      x->item->push_back(add_node(t, field.key)), x->item->push_back(convert_element(t, field.value));
  return x;
}

struct machine {
  ni_tree &t;
  string_view in;
  size_t at = 0;
  std::vector<ni_node *> stack, memo;
  std::vector<size_t> mark;

  string_view read_bytes(uint64_t n) {
    require(n <= in.size() - at);
    at += n;
    return in.substr(at - n, n);
  }
  /* Of n bytes; what is wider than 64 bits is cut. */
  uint64_t read_number(uint64_t n, bool has_sign = false) {
    string_view b = read_bytes(n);
    uint64_t x = has_sign && n && b[n - 1] & 0x80 ? UINT64_MAX : 0;
    for (uint64_t i = std::min<uint64_t>(n, 8); i-- > 0;)
      x = x << 8 | (unsigned char)b[i];
    return x;
  }
  void push(ni_node *x) { stack.push_back(x); }
  void push_integer(uint64_t n, bool has_sign) {
    push(add_node(t, NUMBER, (int64_t)read_number(n, has_sign)));
  }
  size_t find_below(size_t n) {
    require(n <= stack.size());
    return stack.size() - n;
  }
  size_t pop_mark() {
    require(!mark.empty() && mark.back() <= stack.size());
    size_t from = mark.back();
    mark.pop_back();
    return from;
  }
  void move_into(size_t from, ni_node *into) { /* with what is on the stack from there on */
    into->item->insert(into->item->end(), stack.begin() + (ptrdiff_t)from, stack.end());
    stack.resize(from);
  }
  void extend_node(size_t from, kind is) {
    require(from > 0 && stack[from - 1]->is == is && (is == LIST || (stack.size() - from) % 2 == 0));
    move_into(from, stack[from - 1]);
  }
  void push_tuple(size_t from) {
    ni_node *x = add_node(t, LIST);
    move_into(from, x);
    push(x);
  }
  void memoize(uint64_t i) {
    require(!stack.empty() && i < NI_TREE_VALUES);
    if (i >= memo.size())
      memo.resize(i + 1);
    memo[i] = stack.back();
  }
  void push_memo(uint64_t i) {
    require(i < memo.size() && memo[i]);
    count_value(t);
    push(memo[i]);
  }
  /* false: the end. */
  bool run_step() {
    unsigned char op = (unsigned char)read_bytes(1)[0];
    switch (op) {
      case 0x80:
        return read_number(1), true; /* protocol */
      case 0x95:
        return read_number(8), true; /* frame */
      case '(':
        return require(mark.size() < NI_TREE_MARKS), mark.push_back(stack.size()), true;
      case 'N':
        return push(add_node(t, NONE)), true;
      case 'G':
        return read_number(8), push(add_node(t, NONE)), true;
      case 0x88:
      case 0x89:
        return push(add_node(t, NUMBER, op == 0x88)), true;
      case 'K':
        return push_integer(1, false), true;
      case 'M':
        return push_integer(2, false), true;
      case 'J':
        return push_integer(4, true), true;
      case 0x8a:
        return push_integer(read_number(1), true), true;
      case 'X':
        return push(add_node(t, read_bytes(read_number(4)))), true;
      case 0x8c:
        return push(add_node(t, read_bytes(read_number(1)))), true;
      case ']':
      case ')':
        return push(add_node(t, LIST)), true;
      case '}':
        return push(add_node(t, DICT)), true;
      case 'a':
        return extend_node(find_below(1), LIST), true;
      case 'e':
        return extend_node(pop_mark(), LIST), true;
      case 's':
        return extend_node(find_below(2), DICT), true;
      case 'u':
        return extend_node(pop_mark(), DICT), true;
      case 't':
        return push_tuple(pop_mark()), true;
      case 0x85:
      case 0x86:
      case 0x87:
        return push_tuple(find_below(op - 0x84u)), true;
      case 'q':
        return memoize(read_number(1)), true;
      case 'r':
        return memoize(read_number(4)), true;
      case 0x94:
        return memoize(memo.size()), true;
      case 'h':
        return push_memo(read_number(1)), true;
      case 'j':
        return push_memo(read_number(4)), true;
      case '.':
        return require(stack.size() == 1), t.root = stack[0], false;
      default:
        break;
    }
    char why[200];
    snprintf(why, sizeof why,
             "opcode 0x%02x at byte %zu: of a pickle data alone is read, nothing is executed. Make JSON with "
             "torch's _dump_nccl_trace_json() and give that",
             op, at - 1);
    throw refusal{why};
  }
};

/* Numbers that 64 bits cannot hold are texts: they do not cost the dump. bad: why it was refused as it is. */
simdjson::error_code parse_again(ni_tree &t, size_t n, simdjson::error_code bad, dom::element &root) {
  std::unique_ptr<char, decltype(&free)> text(
      (char *)malloc(NI_JSON_QUOTED_MAX(n) + simdjson::SIMDJSON_PADDING), free);
  if (!text)
    throw std::bad_alloc();
  size_t length = ni_json_quote_numbers(t.bytes.get(), n, text.get());
  return length == n ? bad : t.parser.parse(text.get(), length, false).get(root);
}

}  // namespace

bool ni_tree_is_dump(const char *path) {
  char why[256];
  size_t n;
  std::unique_ptr<char, decltype(&free)> bytes(ni_read_whole(path, 128, &n, why, sizeof why), free);
  if (!bytes || n < 3)
    return false;
  string_view b(bytes.get(), n);
  if (b[0] == '\x80') {
    const bool is_version = b[1] >= 2 && b[1] <= 5, has_frame = b[2] == '\x95' && n > 11;
    return is_version && (b[2] == '}' || (has_frame && b[11] == '}'));
  }
  if (ni_ras_is_answer(path))
    return false;                              /* it begins with a key that a dump has, too */
  size_t at = b.find_first_not_of(" \n\r\t{"); /* the first key */
  for (string_view k :
       {"\"entries\"", "\"pg_config\"", "\"pg_status\"", "\"version\"", "\"nccl_", "\"rank\""})
    if (b[0] == '{' && at != b.npos && b.substr(at, k.size()) == k)
      return true;
  return false;
}

struct ni_tree *ni_tree_read(const char *path, char why[256]) try {
  std::unique_ptr<ni_tree> t(new ni_tree);
  size_t n;
  t->bytes.reset(ni_read_whole(path, NI_TREE_BYTES + 1, &n, why, 256));
  if (!t->bytes)
    return nullptr;
  if (n > NI_TREE_BYTES)
    throw refusal{"longer than 256 MiB. Make the ring smaller (TORCH_NCCL_TRACE_BUFFER_SIZE)"};
  if (t->bytes.get()[0] == '\x80') {
    machine m{*t, {t->bytes.get(), n}, 0, {}, {}, {}};
    while (m.run_step()) {}
  } else {
    dom::element root;
    auto bad = t->parser.allocate(n, 32);
    if (!bad)
      bad = t->parser.parse(t->bytes.get(), n, false).get(root);
    if (bad)
      bad = parse_again(*t, n, bad, root);
    if (bad)
      throw refusal{simdjson::error_message(bad)};
    t->root = convert_element(*t, root);
  }
  require(t->root->is == DICT);
  return t.release();
} catch (const refusal &r) {
  return snprintf(why, 256, "%s", r.why.c_str()), nullptr;
} catch (const std::bad_alloc &) {
  return snprintf(why, 256, "%s", strerror(ENOMEM)), nullptr;
}

void ni_tree_free(struct ni_tree *t) { delete t; }
const struct ni_node *ni_tree_root(const struct ni_tree *t) { return t->root; }

size_t ni_node_length(const struct ni_node *x) { return x && x->is >= LIST ? x->item->size() : 0; }

const struct ni_node *ni_node_at(const struct ni_node *x, size_t i) {
  return i < ni_node_length(x) ? (*x->item)[i] : nullptr;
}

const struct ni_node *ni_node_get(const struct ni_node *x, const char *key) {
  size_t n = x && x->is == DICT ? std::min<size_t>(ni_node_length(x), 128) : 0;
  for (size_t i = 0; i + 1 < n; i += 2) {
    const ni_node *k = (*x->item)[i];
    if (k->is == TEXT && string_view(k->text, (size_t)k->number) == key)
      return (*x->item)[i + 1];
  }
  return nullptr;
}

int64_t ni_node_number(const struct ni_node *x, int64_t otherwise) {
  char text[24], *end;
  if (x && x->is == NUMBER)
    return x->number;
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
