#include "screen.h"

#include <curses.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/base/now.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/text/put.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/base/text/table.h"
#include "exporter/base/text/terminal.h"
#include "exporter/base/text/time_text.h"

enum { RED = 1, YELLOW, ESCAPE = 27, ROOMY = 40, CELL = 128, NAME = 16, COLUMNS_MAX = 16, TOLD = 3 };

struct ni_screen {
  FILE *out;
  SCREEN *screen;
  uint64_t every_ns;
  size_t from, page; /* first row that is shown; rows that fit */
  enum ni_top_kind view;
  int width[NI_TOP_KINDS][COLUMNS_MAX]; /* of each column so far: it only grows, so that nothing jumps */
  int y;                                /* next line */
  bool colours, paused, typing, help;
};

/* ---- tables as text ---- */

static void format_number(char out[CELL], int unit, double v) {
  if (unit == 'o') { /* in five characters */
    const char *prefix = v < 9999.5 ? "" : v < 999.5e3 ? "k" : "M";
    const double shown = *prefix == 'k' ? v / 1e3 : *prefix == 'M' ? v / 1e6 : v;
    if (v >= 0)
      snprintf(out, CELL, "%.*f%s", *prefix && shown < 99.95, shown, prefix);
    else
      snprintf(out, CELL, "-");
    return;
  }
  const char *name = unit == 'B' && v >= 0 ? ni_decimal_unit(&v, 999.5)
      : unit == 'n'                        ? ""
                                           : (const char[]){(char)unit, 0};
  const bool has_digits = unit == '%' || (unit == 'B' && *name != 'B');
  v *= unit == '%' ? 100 : unit == 'M' ? 1e-6 : 1;
  if (!(v >= 0) || (unit == 's' && v == 0))
    snprintf(out, CELL, "-");
  else if (unit == 's')
    ni_duration_text(v * 1e6, out);
  else
    snprintf(out, CELL, "%.*f%.*s", has_digits && v < 9.95, v, *name != 'B', name);
}

static bool is_known(const struct ni_top_field *x, const void *item) {
  const char *at = (const char *)item + x->at;
  return x->text ? *at != 0 : *(const double *)(const void *)at >= 0;
}

/* How many of the n bytes fit into so many columns. */
static size_t count_bytes_held(const char *text, size_t n, int columns) {
  while (n && ni_text_columns(text, n) > columns)
    do
      n--;
    while (n && (text[n] & 0xc0) == 0x80);
  return n;
}

/* A name that is too long ends in ~. */
static void cut_cell(char text[CELL]) {
  int most = COLS / 6 > NAME ? COLS / 6 : NAME;
  if (ni_text_columns(text, strlen(text)) > most)
    memcpy(text + count_bytes_held(text, strlen(text), most - 1), "~", 2);
}

/*
 * Prints n items from `from` on, with heads, in `room` columns (0: as wide as the terminal).
 *
 * width: of each column so far; NULL: nothing is cut or left out. Otherwise columns only grow, so that
 * nothing jumps, and a column of which nothing is known is left out.
 */
static void print_items(FILE *f, const struct ni_top *t, enum ni_top_kind kind, size_t from, size_t n,
                        int room, int *width) {
  const struct ni_top_table *what = &ni_top_tables[kind];
  struct ni_column column[COLUMNS_MAX];
  struct ni_table out;
  size_t columns = 0;
  for (const struct ni_top_field *x = what->field; columns < what->n && x->head; columns++, x++) {
    bool known = !width || width[columns];
    for (size_t i = 0; !known && i < t->n[kind]; i++)
      known = is_known(x, t->item[kind][i]);
    column[columns] = (struct ni_column){
        .head = known ? x->head : "", .left = x->text, .drop = x->drop, .width = width ? width[columns] : 0};
  }
  ni_table_begin(&out, column, columns);
  out.room = room;
  for (size_t i = from; i < t->n[kind] && i < from + n; i++)
    for (size_t k = 0; k < columns; k++) {
      const struct ni_top_field *x = &what->field[k];
      const char *at = (const char *)t->item[kind][i] + x->at;
      char cell[CELL] = "-";
      const bool is_empty_end = x->text && !*at && k + 1 == columns;
      if (!*column[k].head || is_empty_end)
        *cell = 0;
      else if (!x->text)
        format_number(cell, x->unit, *(const double *)(const void *)at);
      else if (*at)
        snprintf(cell, CELL, "%s", at);
      if (width && x->text && k + 1 < columns)
        cut_cell(cell);
      int columns_of = ni_text_columns(cell, strlen(cell));
      if (width && width[k] < columns_of)
        width[k] = columns_of;
      ni_table_cell(&out, "%s", cell);
    }
  ni_table_print(&out, f);
}

/* Time and sums, jobs that hang, nodes that do not answer, a line each. */
static void print_head(const struct ni_top *t,
                       void (*line)(struct ni_screen *s, enum ni_top_tone tone, const char *text),
                       struct ni_screen *s) {
  char text[1400], now[32];
  struct ni_put_text w = {text, sizeof text};
  const struct ni_top_job *shown[TOLD];
  size_t told = 0, k;
  ni_put(&w, "%s  %s %s, %s %s, %s %s, %s in flight, %s stuck",
         ni_second_text((int64_t)(ni_now_ns(CLOCK_REALTIME) / 1000000000), ' ', true, now) + 11,
         NI_COUNT(t->nodes), ni_plural(t->nodes, "node", "nodes"), NI_COUNT(t->jobs),
         ni_plural(t->jobs, "job", "jobs"), NI_COUNT(t->ranks), ni_plural(t->ranks, "rank", "ranks"),
         NI_COUNT(fmin(t->in_flight, 1e18)), NI_COUNT(fmin(t->stuck, 1e18)));
  if (t->n[NI_TOP_RANKS] < t->rows)
    ni_put(&w, "; %s of %s with \"%s\"", NI_COUNT(t->n[NI_TOP_RANKS]), NI_COUNT(t->rows), t->filter);
  line(s, NI_TOP_PLAIN, text);
  for (size_t i = 0; i < t->n[NI_TOP_JOBS] && told < TOLD; i++) { /* each agent tells of its job */
    const struct ni_top_job *j = t->item[NI_TOP_JOBS][i];
    for (k = 0; k < told; k++)
      if (strcmp(shown[k]->job, j->job) == 0 && (shown[k]->uid == j->uid || j->uid < 0))
        break;
    if (!*j->hang || j->hangs == 0 || k < told)
      continue;
    struct ni_put_text to = {text, sizeof text};
    ni_put(&to, "job %s", j->job);
    if (t->users && j->uid >= 0)
      ni_put(&to, " (uid %.0f)", j->uid);
    ni_put(&to, ": %s", j->hang);
    line(s, NI_TOP_ALERT, text);
    shown[told++] = j;
  }
  if (!told && *t->waits)
    line(s, NI_TOP_ALERT, t->waits); /* nobody has judged yet */
  told = 0;
  for (size_t i = 0; i < t->n_sources; i++) {
    const struct ni_top_source *o = t->source + i;
    if (!*o->error || told++ >= TOLD)
      continue;
    snprintf(text, sizeof text, "node %s: no answer for %s (%s)", o->name,
             ni_age_text(ni_now_ns(CLOCK_MONOTONIC) - o->answered_ns, now), o->error);
    line(s, NI_TOP_GREY, text);
  }
  snprintf(text, sizeof text, "no answer from %zu more", told - TOLD);
  if (told > TOLD)
    line(s, NI_TOP_GREY, text);
}

static void print_line(struct ni_screen *s, enum ni_top_tone tone, const char *text) {
  ni_say(stdout, "%s\n", text);
}

void ni_top_print(const struct ni_top *t) {
  print_head(t, print_line, NULL);
  for (int kind = NI_TOP_KINDS; --kind > NI_TOP_JOBS;) {
    if (t->n[kind])
      ni_say(stdout, "\n");
    print_items(stdout, t, (enum ni_top_kind)kind, 0, t->n[kind], 0, NULL);
  }
}

/* ---- the terminal ---- */

const char *ni_screen_open(struct ni_screen **out, bool colours, uint64_t every_ns) {
  struct ni_screen *s = *out = calloc(1, sizeof *s);
  if (!s)
    return "no memory";
  /* stdout may have no descriptor */
  *s = (struct ni_screen){.every_ns = every_ns, .view = NI_TOP_RANKS, .out = fdopen(dup(STDOUT_FILENO), "w")};
  if (!s->out || !(s->screen = newterm(NULL, s->out, stdin)))
    return "the terminal cannot be used: use --once, or set TERM to its kind, such as xterm";
  cbreak();
  noecho();
  nodelay(stdscr, true);
  keypad(stdscr, true);
  set_escdelay(25);
  curs_set(0);
  s->colours = colours && has_colors() && start_color() == OK && use_default_colors() == OK &&
      init_pair(RED, COLOR_RED, -1) == OK && init_pair(YELLOW, COLOR_YELLOW, -1) == OK;
  return NULL;
}

void ni_screen_close(struct ni_screen *s) {
  if (s && s->screen) {
    endwin();
    delscreen(s->screen);
  }
  if (s && s->out)
    fclose(s->out);
  free(s);
}

uint64_t ni_screen_every(const struct ni_screen *s) { return s->paused ? 0 : s->every_ns; }

/* ---- drawing ---- */

/*
 * Draws one line, as much of it as fits. Returns how many bytes did. Reversed text is filled up to the edge.
 */
static size_t draw_line(struct ni_screen *s, const char *text, size_t n, attr_t a) {
  n = count_bytes_held(text, n, COLS);
  attrset((int)a);
  if (a & A_REVERSE)
    mvhline(s->y, 0, ' ', COLS);
  mvaddnstr(s->y++, 0, text, (int)n);
  attrset(A_NORMAL);
  return n;
}

static attr_t attribute_of(const struct ni_screen *s, enum ni_top_tone tone) {
  if (tone == NI_TOP_GREY || tone == NI_TOP_PLAIN)
    return tone == NI_TOP_GREY ? A_DIM : A_NORMAL;
  attr_t over = tone == NI_TOP_CULPRIT ? A_REVERSE : A_NORMAL;
  return over |
      (!s->colours                ? A_BOLD
           : tone == NI_TOP_ALERT ? A_BOLD | (attr_t)COLOR_PAIR(RED)
                                  : (attr_t)COLOR_PAIR(YELLOW));
}

/* Draws three lines at most, broken between words. What does not fit is replaced by dots. */
static void draw_wrapped(struct ni_screen *s, enum ni_top_tone tone, const char *text) {
  for (int line = 1; *text; line++) {
    size_t n = strlen(text), first = n;
    bool last = line == 3 || s->y > LINES - 6;
    while (first) {
      const bool is_cut = last && first < n, is_in_word = first < n && text[first] != ' ';
      if (ni_text_columns(text, first) <= COLS - 4 * is_cut && !is_in_word)
        break;
      first--;
    }
    if (!first)
      first = count_bytes_held(text, n, COLS - 4 * last);
    draw_line(s, text, first, attribute_of(s, tone));
    if (last && first < n)
      mvaddstr(s->y - 1, ni_text_columns(text, first), " ...");
    text += last || !first ? n : first + (text[first] == ' ');
  }
}

/* What stands in place of an empty table: why it is empty, and what key shows more. */
static const char *why_empty(const struct ni_top *t, enum ni_top_kind kind, char out[256]) {
  static const char *const none[NI_TOP_KINDS] = {
      [NI_TOP_GPUS] =
          "No GPU: NVML (libnvidia-ml.so.1) tells of none on the nodes that answer. n shows the NICs.",
      [NI_TOP_NICS] =
          "No NIC: no InfiniBand, Slingshot or Ethernet device is seen on the nodes that answer. n shows the "
          "ranks."};
  if (kind != NI_TOP_RANKS)
    return none[kind];
  snprintf(out, 256, "No rank has \"%s\" in job, host, communicator or function. Esc shows all.", t->filter);
  return out;
}

/* The heads and n items below. */
static void draw_table(struct ni_screen *s, const struct ni_top *t, enum ni_top_kind kind, size_t from,
                       size_t n) {
  char *text = NULL, *end;
  size_t bytes;
  FILE *f = open_memstream(&text, &bytes);
  if (f)
    print_items(f, t, kind, from, n, COLS, s->width[kind]);
  if (f)
    fclose(f);
  if (n > t->n[kind] - from)
    n = t->n[kind] - from; /* what columns there is no room for is a line, too */
  for (char *at = text; text && *at && n-- + 1; at = end + (*end != 0)) {
    const struct ni_top_rank *r = at > text && kind == NI_TOP_RANKS ? t->item[kind][from++] : NULL;
    end = strchrnul(at, '\n');
    draw_line(s, at, (size_t)(end - at),
              at == text ? A_REVERSE : attribute_of(s, r ? r->tone : NI_TOP_PLAIN));
  }
  free(text);
}

static void draw_help(struct ni_screen *s) {
  static const char *const line[] = {
      "nccl-inspector top: what every rank does now",
      "",
      "arrows PgUp PgDn Home End  scroll",
      "s F6       sort: by rank, age (who is waited for, then the oldest),",
      "           bandwidth (lowest first), late (most first)",
      "/ F4       show only ranks with a text in job, host, communicator or function",
      "Esc        show all",
      "n          ranks, GPUs, NICs",
      "space p    pause",
      "+ -        look more often, less often",
      "h F1       this help",
      "q F10      quit",
      "",
      "AGE        for how long the oldest operation has been in flight",
      "BUSBW      bus bandwidth of the last seconds, bytes a second",
      "LATE       share of the time for which the middle rank of its node waited for it",
      "WAITS FOR  ranks that have not come to the operation that this one is in",
      "",
      "Red: stuck or killed. Yellow: others wait for it; a bar: for 5 s or more.",
      "Dim: its node does not answer.",
      "",
      "Any key goes back."};
  for (size_t i = 0; i < sizeof line / sizeof *line; i++)
    draw_line(s, line[i], strlen(line[i]), i ? A_NORMAL : A_BOLD);
}

/* Replaces two blanks by one. */
static void squeeze_blanks(char *text) {
  char *to = text;
  for (const char *from = text; *from; from++)
    if (from[0] != ' ' || from[1] != ' ')
      *to++ = *from;
  *to = 0;
}

void ni_screen_draw(struct ni_screen *s, const struct ni_top *t, const char *nothing) {
  char keys[256];
  size_t n = t->n[s->view];
  erase();
  s->y = 0;
  if (s->help)
    draw_help(s);
  else {
    print_head(t, draw_wrapped, s);
    /*
     * Below the ranks: what they leave free, and of many lines two fifths; the page is the rest without heads
     * and keys.
     */
    int room = LINES - 1 - s->y, least = LINES >= ROOMY ? room / 5 * 2 : 0, below[NI_TOP_KINDS] = {0};
    int rows = n < (size_t)room ? (int)n + 1 : room,
        spare = s->view != NI_TOP_RANKS || !n ? 0
        : room - rows > least                 ? room - rows
                                              : least;
    for (int kind = NI_TOP_NICS; kind >= NI_TOP_GPUS; spare -= below[kind--]) {
      int want = t->n[kind] < (size_t)room ? (int)t->n[kind] + 1 : room,
          other = t->n[NI_TOP_GPUS] < (size_t)room ? (int)t->n[NI_TOP_GPUS] + 1 : room;
      int most = kind == NI_TOP_GPUS ? spare : spare - other > spare / 2 ? spare - other : spare / 2;
      below[kind] = most < 3 || want < 2 ? 0 : want < most ? want : most;
      room -= below[kind];
    }
    s->page = room > 2 ? (size_t)room - 1 : 1;
    if (s->from + s->page > n)
      s->from = n > s->page ? n - s->page : 0;
    char why[256];
    if (!n && (t->rows || s->view != NI_TOP_RANKS))
      draw_wrapped(s, NI_TOP_PLAIN, why_empty(t, s->view, why));
    else if (!n)
      draw_wrapped(s, NI_TOP_PLAIN, nothing);
    else
      draw_table(s, t, s->view, s->from, s->page);
    for (int kind = NI_TOP_GPUS; kind <= NI_TOP_NICS; kind++)
      if (below[kind])
        draw_table(s, t, (enum ni_top_kind)kind, 0, (size_t)below[kind] - 1);
    if (s->typing)
      snprintf(keys, sizeof keys, "Filter: %s_   Enter keeps it, Esc shows all", t->filter);
    else
      snprintf(keys, sizeof keys,
               "F1 Help  F4 Filter  F6 Sort: %s  n GPUs, NICs  Space %s  + - %gs  F10 Quit",
               ni_top_sort_names[t->sort], s->paused ? "PAUSED" : "Pause", (double)s->every_ns / 1e9);
    if (!s->typing && (int)strlen(keys) > COLS)
      squeeze_blanks(keys);
    s->y = LINES - 1;
    draw_line(s, keys, strlen(keys), A_REVERSE);
  }
  refresh();
}

/* ---- keys ---- */

static void edit_filter(struct ni_screen *s, struct ni_top *t, int c) {
  size_t n = strlen(t->filter);
  const bool is_enter = c == '\n' || c == '\r' || c == KEY_ENTER;
  if (is_enter || c == ESCAPE)
    s->typing = false;
  if (c == ESCAPE)
    *t->filter = 0;
  if (c == KEY_BACKSPACE || c == 127 || c == 8)
    t->filter[count_bytes_held(t->filter, n, ni_text_columns(t->filter, n) - 1)] = 0;
  else if (c >= ' ' && c < 256 && n + 1 < sizeof t->filter) {
    t->filter[n] = (char)c;
    t->filter[n + 1] = 0;
  }
}

static bool handle_key(struct ni_screen *s, struct ni_top *t, int c) {
  size_t by = c == KEY_UP || c == KEY_DOWN ? 1 : s->page;
  switch (c) {
    case 'q':
    case KEY_F(10):
      return false;
    case 'h':
    case '?':
    case KEY_F(1):
      s->help = true;
      break;
    case 's':
    case KEY_F(6):
      t->sort = (t->sort + 1) % NI_TOP_SORTS;
      break;
    case '/':
    case KEY_F(4):
      s->typing = true;
      break;
    case ESCAPE:
      *t->filter = 0;
      break;
    case ' ':
    case 'p':
      s->paused = !s->paused;
      break;
    case 'n':
      s->view = s->view == NI_TOP_RANKS ? NI_TOP_GPUS : s->view + 1;
      s->from = 0;
      break;
    case '+':
      s->every_ns = s->every_ns > 200000000 ? s->every_ns / 2 : 100000000;
      break;
    case '-':
      s->every_ns = s->every_ns < UINT64_C(30000000000) ? s->every_ns * 2 : UINT64_C(60000000000);
      break;
    case KEY_UP:
    case KEY_PPAGE:
      s->from -= s->from > by ? by : s->from;
      break;
    case KEY_DOWN:
    case KEY_NPAGE:
      s->from += by;
      break; /* drawing takes back what is too much */
    case KEY_HOME:
      s->from = 0;
      break;
    case KEY_END:
      s->from = NI_TOP_ROWS_MAX;
      break;
    default:
      break; /* KEY_RESIZE: drawn anew */
  }
  return true;
}

bool ni_screen_keys(struct ni_screen *s, struct ni_top *t, bool *any) {
  for (int c; (c = getch()) != ERR; *any = true) {
    if (s->typing)
      edit_filter(s, t, c);
    else if (s->help && c != KEY_RESIZE)
      s->help = false;
    else if (!handle_key(s, t, c))
      return false;
  }
  return true;
}
