#include "parse_value.h"

#include <cstdint>
#include <cstring>
#include <new>

#include "exporter/base/array.h"
#include "parse_text.h"

static constexpr unsigned depth_max = 32;

bool ni_json_grow(char *&buffer, size_t &size, size_t need) {
  if (size >= need)
    return true;
  size_t bigger = need < 65536 ? 65536 : need + need / 2;
  char *b = new (std::nothrow) char[bigger];
  if (!b)
    return false;
  delete[] buffer;
  buffer = b;
  size = bigger;
  return true;
}

ni_reject ni_json_reason(simdjson::error_code e) {
  switch (e) {
    case simdjson::UTF8_ERROR:
      return NI_REJ_BAD_UTF8;
    case simdjson::MEMALLOC:
      return NI_REJ_NO_MEMORY;
    case simdjson::CAPACITY:
      return NI_REJ_TOO_LONG;
    case simdjson::DEPTH_ERROR:
      return NI_REJ_TOO_DEEP;
    default:
      return NI_REJ_BAD_JSON;
  }
}

ni_reject ni_json_verify(od::value v, unsigned depth) {
  const char *t = ni_json_token(v);
  if (depth > depth_max)
    return NI_REJ_TOO_DEEP;
  if (*t == '{') {
    od::object o;
    if (simdjson::error_code e = v.get_object().get(o))
      return ni_json_reason(e);
    for (auto item : o) {
      od::field f;
      if (simdjson::error_code e = simdjson::simdjson_result<od::field>(item).get(f))
        return ni_json_reason(e);
      if (ni_reject r = ni_json_verify(f.value(), depth + 1))
        return r;
    }
    return NI_OK;
  }
  if (*t == '[') {
    od::array a;
    if (simdjson::error_code e = v.get_array().get(a))
      return ni_json_reason(e);
    for (auto item : a) {
      od::value x;
      if (simdjson::error_code e = simdjson::simdjson_result<od::value>(item).get(x))
        return ni_json_reason(e);
      if (ni_reject r = ni_json_verify(x, depth + 1))
        return r;
    }
    return NI_OK;
  }
  if (*t == '"') {
    const char *s = t + 1;
    while (*s != '"' && *s != '\\')
      s++;
    bool is_valid = *s == '\\' ? v.get_string().error() == simdjson::SUCCESS : ni_json_step_over(v);
    return is_valid ? NI_OK : NI_REJ_BAD_JSON;
  }
  bool word = ni_text_is_true(t) || ni_text_is_false(t) || ni_text_is_null(t);
  return word || ni_text_is_number(t) || ni_text_is_no_value(t) ? NI_OK : NI_REJ_BAD_JSON;
}

bool ni_json_is_line(od::parser &json, char *text, size_t len, size_t room) {
  od::document doc;
  od::object o;
  if (json.iterate(text, len, room).get(doc) || doc.get_object().get(o))
    return false;
  for (auto item : o) {
    od::field f;
    if (simdjson::simdjson_result<od::field>(item).get(f) || ni_json_verify(f.value(), 1) == NI_REJ_BAD_JSON)
      return false;
  }
  const char *rest;
  return doc.current_location().get(rest) == simdjson::OUT_OF_BOUNDS;
}

ni_reject ni_json_f64(od::value &v, const char *t, double &out, bool &has) {
  const char *p = t + (*t == '-');
  if (ni_text_is_digit(*p) && !(*p == '0' && ni_text_is_digit(p[1]))) {
    has = v.get_double().get(out) == simdjson::SUCCESS;
    if (has)
      return NI_OK;
    /* 1e999 has the form of a number; simdjson calls it an error because no double holds it. */
    return ni_text_is_number(t) ? NI_REJ_OUT_OF_RANGE : NI_REJ_BAD_JSON;
  }
  has = false;
  if (ni_text_is_null(t))
    return NI_OK;
  if (ni_text_is_no_value(t))
    return *t != '"' || ni_json_step_over(v) ? NI_OK : NI_REJ_BAD_JSON;
  return ni_text_not_text(t);
}

ni_reject ni_json_string(ni_json_names &names, od::value &v, const char *t, const char *&out) {
  if (*t != '"')
    return ni_text_not_text(t);
  char *d = names.text + names.used, *start = d;
  const char *s = t + 1;
  for (;;) {
    uint64_t w = ni_text_load8(s), q = w ^ 0x2222222222222222ULL, b = w ^ 0x5c5c5c5c5c5c5c5cULL;
    constexpr uint64_t ones = 0x0101010101010101ULL, tops = 0x8080808080808080ULL;
    uint64_t hit = (((q - ones) & ~q) | ((b - ones) & ~b)) & tops;
    memcpy(d, s, 8);
    if (hit)
      break;
    s += 8;
    d += 8;
  }
  while (*s != '"' && *s != '\\')
    *d++ = *s++;
  if (*s == '\\') {
    std::string_view text;
    if (v.get_string().get(text))
      return NI_REJ_BAD_JSON;
    if (memchr(text.data(), 0, text.size()))
      return NI_REJ_BAD_VALUE;
    memcpy(start, text.data(), text.size());
    d = start + text.size();
  } else if (!ni_json_step_over(v)) {
    return NI_REJ_BAD_JSON;
  }
  *d = 0;
  names.used = static_cast<size_t>(d + 1 - names.text);
  out = start;
  return NI_OK;
}

ni_reject ni_json_key(ni_json_names &names, od::field &f, const char *raw, const char *&out) {
  const char *s = raw;
  while (*s != '"' && *s != '\\')
    s++;
  std::string_view text(raw, static_cast<size_t>(s - raw));
  if (*s == '\\' && f.unescaped_key().get(text))
    return NI_REJ_BAD_JSON;
  if (memchr(text.data(), 0, text.size()))
    return NI_REJ_BAD_VALUE;
  char *d = names.text + names.used;
  memcpy(d, text.data(), text.size());
  d[text.size()] = 0;
  names.used += text.size() + 1;
  out = d;
  return NI_OK;
}

ni_reject ni_json_by(ni_json_names &names, od::value &v, ni_by &by) {
  od::object o;
  memset(&by, 0, sizeof by);
  if (simdjson::error_code e = v.get_object().get(o))
    return ni_json_wrong_type(e);
  for (auto item : o) {
    od::field f;
    uint64_t count = 0;
    const char *end;
    if (simdjson::error_code e = simdjson::simdjson_result<od::field>(item).get(f))
      return ni_json_reason(e);
    if (ni_reject r = ni_text_u64(ni_json_token(f.value()), &count, &end))
      return r;
    if (__builtin_add_overflow(by.total, count, &by.total) || by.total > INT64_MAX)
      return NI_REJ_OUT_OF_RANGE;
    if (by.n == NI_BY_MAX) {
      by.more++;
      continue;
    }
    if (ni_reject r = ni_json_key(names, f, f.key().raw(), by.item[by.n].name))
      return r;
    by.item[by.n++].count = count;
  }
  return NI_OK;
}

ni_reject ni_json_hist(od::value &v, uint64_t *hist) {
  od::object o;
  memset(hist, 0, NI_HIST_BUCKETS * sizeof *hist);
  if (simdjson::error_code e = v.get_object().get(o))
    return ni_json_wrong_type(e);
  for (auto item : o) {
    od::field f;
    uint64_t edge = 0, count = 0;
    if (simdjson::error_code e = simdjson::simdjson_result<od::field>(item).get(f))
      return ni_json_reason(e);
    const char *s = f.key().raw(), *first = s, *end;
    for (; ni_text_is_digit(*s) && s - first < 19; s++)
      edge = edge * 10 + static_cast<unsigned char>(*s - '0');
    if (s == first || *s != '"')
      return NI_REJ_BAD_VALUE;
    if (ni_reject r = ni_text_u64(ni_json_token(f.value()), &count, &end))
      return r;
    uint64_t &bucket = hist[ni_hist_bucket(edge)];
    if (__builtin_add_overflow(bucket, count, &bucket) || bucket > INT64_MAX)
      return NI_REJ_OUT_OF_RANGE;
  }
  return NI_OK;
}

ni_reject ni_json_pairs(ni_json_names &names, od::value &v, ni_pairs &pairs) {
  od::object o;
  pairs.n = pairs.more = 0;
  if (simdjson::error_code e = v.get_object().get(o))
    return ni_json_wrong_type(e);
  for (auto item : o) {
    od::field f;
    if (simdjson::error_code e = simdjson::simdjson_result<od::field>(item).get(f))
      return ni_json_reason(e);
    if (pairs.n == NI_PAIRS_MAX) {
      pairs.more++;
      if (ni_reject r = ni_json_verify(f.value(), 2))
        return r;
      continue;
    }
    if (ni_reject r = ni_json_key(names, f, f.key().raw(), pairs.item[pairs.n].key))
      return r;
    if (ni_reject r = ni_json_string(names, f.value(), ni_json_token(f.value()), pairs.item[pairs.n].value))
      return r;
    pairs.n++;
  }
  return NI_OK;
}

ni_reject ni_json_numbers(ni_json_numbers_room &room, od::value &v, ni_numbers &numbers) {
  od::array a;
  if (simdjson::error_code e = v.get_array().get(a))
    return ni_json_wrong_type(e);
  if (!room.used && !ni_array_room(room.number, room.most, room.size))
    return NI_REJ_NO_MEMORY;
  numbers.list = room.number + room.used;
  numbers.n = 0;
  for (auto item : a) {
    od::value x;
    if (simdjson::error_code e = simdjson::simdjson_result<od::value>(item).get(x))
      return ni_json_reason(e);
    const char *t = ni_json_token(x), *end;
    int64_t number = NI_NO_NUMBER;
    if (!ni_text_is_null(t))
      if (ni_reject r = ni_text_i64(t, &number, &end))
        return r;
    room.number[room.used++] = number;
    numbers.n++;
  }
  return NI_OK;
}
