/*
 * Takes the time of making out of a PDF, so that the same data make the same bytes.
 *
 * cairo 1.16 writes it whatever the environment says. The digits are replaced in place by 1970-01-01, so no offset in
 * the file changes. A file that is not there, or has no date, is left alone. Threads: any, one file each.
 */
#ifndef NI_PDF_DATE_H
#define NI_PDF_DATE_H

void ni_pdf_take_date(const char *path);

#endif
