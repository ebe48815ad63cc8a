#define SIMDJSON_EXCEPTIONS 0
#include <simdjson.h>

#include <string>

extern "C" {
#include "answer.h"
}

namespace dom = simdjson::dom;

static void text_of(dom::element e, std::string &out) {
  std::string_view text;
  dom::array list;
  if (!e.get(text))
    out.append(text);
  else if (!e.get(list))
    for (dom::element x : list) {
      if (!out.empty())
        out += ", ";
      text_of(x, out);
    }
  else if (!e.is_null())
    out += simdjson::minify(e);
}

static void give(dom::element e, const char *const *key, size_t keys, ni_answer_row *row, void *arg) {
  std::string text[NI_ANSWER_KEYS_MAX];
  const char *cell[NI_ANSWER_KEYS_MAX];
  dom::element value;
  for (size_t k = 0; k < keys && k < NI_ANSWER_KEYS_MAX; k++) {
    if (!e.is_object()) {
      if (k == 0)
        text_of(e, text[k]);
    } else if (!(*key[k] == '/' ? e.at_pointer(key[k]) : e[key[k]]).get(value))
      text_of(value, text[k]);
    cell[k] = text[k].c_str();
  }
  row(arg, cell);
}

extern "C" long ni_answer_rows(const char *json, size_t bytes, const char *at, const char *const *key,
                               size_t keys, ni_answer_row *row, void *arg) {
  dom::parser parser;
  dom::element doc, there;
  dom::array list;
  if (!json || parser.parse(json, bytes).get(doc) || doc.at_pointer(at).get(there))
    return -1;
  if (!there.is_array())
    return give(there, key, keys, row, arg), 1;
  long n = 0;
  if (!there.get(list))
    for (dom::element e : list)
      give(e, key, keys, row, arg), n++;
  return n;
}
