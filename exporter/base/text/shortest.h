/*
 * Doubles as text: the shortest digits that read back to the same value, laid out as Python's repr() does it,
 * because users compare our CSV with that of a Python program ("0.1", "200.0", "1e-05", "1e+16").
 *
 * The digits come from the C++ library's std::to_chars (Ryu): 30 ns a number, where a search with %.17g takes
 * 600. Pure; any thread.
 */
#ifndef NI_SHORTEST_H
#define NI_SHORTEST_H

#define NI_SHORTEST_BYTES 32

/*
 * Writes at most NI_SHORTEST_BYTES, no NUL; returns the length. NaN and infinities give an empty text, as in
 * a CSV.
 */
unsigned ni_shortest(double value, char *out);

#endif
