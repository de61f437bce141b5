using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>A field of rows that the program produces.</summary>
public struct Field {
  /// <summary>The name of the model's input.</summary>
  public string Name { get; }
  /// <summary>The type of the elements.</summary>
  public DType DType { get; }
  /// <summary>The dims of one row.</summary>
  public long[] Dims { get; }

  /// <summary>A field with this name, dtype and dims of one row.</summary>
  public Field(string name, DType dtype, params long[] dims) {
    Name = Handle.Given(name, "name");
    DType = dtype;
    Dims = Handle.Given(dims, "dims");
  }
}

/// <summary>The rows that training reads, as an endless shuffled stream that depends only on the seed.</summary>
public sealed class Data : Handle {
  internal readonly Native.Data native;
  internal override NativeHandle Safe { get { return native.handle; } }

  private Data(Native.Data made, NativeHandle parent) {
    native = made;
    Safe.KeepWhat(parent);
  }

  /// <summary>A text file, a folder of text files or a token file. Option: <c>new { context = 64 }</c>, the number of tokens per row.</summary>
  [OfC("st_data_files")]
  public static Data Files(Context context, string path, object options = null) {
    return new Data(Native.Data.files(Given(context, "context").native, Given(path, "path"), Json.OfOptions(options)), context.Safe);
  }

  /// <summary>Named arrays whose first dimension is the rows. They are not copied: they stay pinned, and must not be written to, until the data and
  /// everything that uses it is gone.</summary>
  [OfC("st_data_arrays")]
  public static Data Arrays(Context context, Batch arrays) {
    Given(context, "context");
    long rows = -1;
    foreach (KeyValuePair<string, View> array in Given(arrays, "arrays"))
      if (rows < 0) rows = array.Value.Rows(array.Key);
    if (rows < 0) throw new InvalidArgumentException("Data.Arrays: at least one array is needed, got none");
    NativeHandle open = context.Safe.Open;
    Pins pins = Pins.Hold(arrays);
    return new Data(Native.Data.arrays(context.native, rows, pins.All, Bridge.Strong(open, pins)), context.Safe);
  }

  /// <summary>Rows that <paramref name="fill"/> produces ahead of use, on threads of the library. An exception that it throws is rethrown by the
  /// step that needs the rows.</summary>
  [OfC("st_data_callback")]
  public static Data RowsOf(Context context, long rows, IReadOnlyList<Field> fields, FillFunction fill) {
    Given(context, "context");
    Given(fill, "fill");
    var all = new Writing();
    all.AddAll(Given(fields, "fields"), field => all.Add(Given(field.Name, "a field's name")).Add((long)field.DType).Add(field.Dims));
    var made = new Data(Native.Data.of_rows(context.native, rows, all.Done(), Bridge.Weak(context.Safe, fill)), context.Safe);
    made.Safe.Keep(fill);
    return made;
  }

  /// <summary>Splits the rows into training data and validation data; fraction of the rows are for validation. Both use this source.</summary>
  [OfC("st_data_split")]
  public void Split(double fraction, long seed, out Data training, out Data validation) {
    var parts = new Native.DataSplit(native, fraction, seed);
    training = new Data(parts.take_training(), Safe);
    validation = new Data(parts.take_validation(), Safe);
    parts.handle.Dispose();
  }

  /// <summary>Number of rows.</summary>
  [OfC("st_data_rows")]
  public long Rows { get { return native.rows(); } }

  /// <summary>For data of files: the number of different tokens.</summary>
  [OfC("st_data_vocabulary")]
  public long Vocabulary { get { return native.vocabulary(); } }

  /// <summary>Loss on <paramref name="validation"/>, in nats per token, of a bigram model counted on this data.</summary>
  [OfC("st_data_bigram_loss")]
  public double BigramLoss(Data validation) { return native.bigram_loss(Given(validation, "validation").native); }
}

}
