/*
 * The embedded page: bytes [ni_report_head, ni_report_head_end), the data, then [ni_report_tail, ni_report_tail_end).
 * Constant; both empty when the build could not make them.
 */
#ifndef NI_REPORT_ASSETS_H
#define NI_REPORT_ASSETS_H

extern const char ni_report_head[], ni_report_head_end[];
extern const char ni_report_tail[], ni_report_tail_end[];

#endif
