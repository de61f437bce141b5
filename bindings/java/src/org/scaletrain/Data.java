package org.scaletrain;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.scaletrain.internal.DataSplit;
import org.scaletrain.internal.Fields;

/** The rows that training reads, as an endless shuffled stream that depends only on the seed. */
public final class Data extends Handle {
  final org.scaletrain.internal.Data raw;

  private Data(org.scaletrain.internal.Data raw, Object... keeps) {
    this.raw = raw;
    raw.keeps = keeps;
  }

  /** The two results of {@link #split}. */
  public record Split(Data training, Data validation) {}

  /** A text file, a folder of text files or a token file, in rows of {@code contextTokens} tokens. */
  public static Data files(Context context, Path path, int contextTokens) {
    return files(context, path, Map.of("context", contextTokens));
  }

  /** The same; the option {@code context} is the number of tokens per row. */
  @OfC("st_data_files")
  public static Data files(Context context, Path path, Map<String, ?> options) {
    return new Data(
        org.scaletrain.internal.Data.files(given(context, "Data.files").raw, path.toString(), Json.options(options)), context.raw);
  }

  /**
   * The program's arrays, which must be direct and are not copied. Their first dimension is the rows. They are kept until the data and
   * everything that uses it is gone, and must not be written to until then.
   */
  @OfC("st_data_arrays")
  public static Data arrays(Context context, Batch arrays) {
    Object[] held = given(arrays, "Data.arrays").held("Data.arrays").pairs();
    if (arrays.size() == 0) throw new InvalidArgument("Data.arrays: at least one array is needed, got none");
    ArrayType first = arrays.get(0).type();
    if (first.rank() == 0)
      throw new InvalidArgument("Data.arrays: \"" + arrays.names().get(0) + "\" has rank 0; the first dimension must be the rows");
    return new Data(org.scaletrain.internal.Data.arrays(given(context, "Data.arrays").raw, first.dim(0), held, held), context.raw, held);
  }

  /** Rows that {@code filler} produces on demand. {@code fields} gives the dtype and dims of one row of each named field. */
  @OfC("st_data_callback")
  public static Data rows(Context context, long rows, Map<String, ArrayType> fields, RowFiller filler) {
    Fields types = new Fields();
    List<String> names = List.copyOf(fields.keySet());
    for (String name : names) {
      ArrayType type = fields.get(name);
      types.add(name, type.dtype().number(), type.dims());
    }
    Object wanted = new Callbacks.Rows(names, given(filler, "Data.rows"));
    return new Data(org.scaletrain.internal.Data.rows_of(given(context, "Data.rows").raw, rows, types, wanted), context.raw, wanted);
  }

  /** Splits the rows into training data and validation data; {@code fraction} of the rows are for validation. Both use this source. */
  @OfC("st_data_split")
  public Split split(double fraction, long seed) {
    DataSplit parts = new DataSplit(raw, fraction, seed);
    return new Split(new Data(parts.take_training(), raw), new Data(parts.take_validation(), raw));
  }

  /** The same with seed 0. */
  public Split split(double fraction) {
    return split(fraction, 0);
  }

  /** Number of rows. */
  @OfC("st_data_rows")
  public long rows() {
    return raw.rows();
  }

  /** For data of files: the number of different tokens. */
  @OfC("st_data_vocabulary")
  public long vocabulary() {
    return raw.vocabulary();
  }

  /** Loss on {@code validation}, in nats per token, of a bigram model counted on this data. */
  @OfC("st_data_bigram_loss")
  public double bigramLoss(Data validation) {
    return raw.bigram_loss(given(validation, "Data.bigramLoss").raw);
  }

  @Override
  @OfC("st_data_destroy")
  public void close() {
    raw.close();
  }
}
