package org.scaletrain;

import java.util.Map;

/** Makes rows when they are wanted. */
@FunctionalInterface
public interface RowFiller {
  /**
   * Writes rows {@code rows[0]}, {@code rows[1]}, ... into the arrays, one for each field by its name, of dims {@code [rows.length, dims of
   * a row]}. Called ahead of use, from threads of the library's, one call at a time. What it throws arrives at the step that wanted the
   * rows. The arrays end with the call.
   */
  void fill(long[] rows, Map<String, Lent> arrays);
}
