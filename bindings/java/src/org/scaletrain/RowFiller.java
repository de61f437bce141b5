package org.scaletrain;

import java.util.Map;

/** Produces rows on demand. */
@FunctionalInterface
public interface RowFiller {
  /**
   * Writes rows {@code rows[0]}, {@code rows[1]}, ... into the arrays. There is one array per field, by name, with dims {@code [rows.length,
   * dims of a row]}. Called ahead of use, on threads of the library, one call at a time. An exception that it throws is rethrown by the step
   * that needs the rows. The arrays are valid only during the call.
   */
  void fill(long[] rows, Map<String, BorrowedArray> arrays);
}
