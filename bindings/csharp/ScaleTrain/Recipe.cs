namespace ScaleTrain {

/// <summary>How to train: <c>new Recipe { Batch = 64, Lr = 0.01 }</c>. Its typed properties are made from the library's table of keys.</summary>
public sealed partial class Recipe : Handle {
  internal readonly Native.Recipe native;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>The defaults.</summary>
  public Recipe() {
    Loader.Require();
    native = new Native.Recipe();
  }

  /// <summary>JSON text (also DeepSpeed's ds_config), a dictionary or an anonymous object: <c>new Recipe(new { batch = 64, lr = 0.01 })</c>. An unknown
  /// key is refused and the nearest named.</summary>
  [OfC("st_recipe_create")]
  public Recipe(object settings) {
    Loader.Require();
    native = new Native.Recipe(ScaleTrain.Json.OfOptions(Given(settings, "settings")));
  }

  /// <summary>Any key: a bool, a number, a text, or what is written as JSON.</summary>
  [OfC("st_recipe_set")]
  public void Set(string key, object value) { native.set(Given(key, "key"), ScaleTrain.Json.Of(value)); }

  /// <summary>A bool, a long, a double or a text; JSON text for lists and maps.</summary>
  [OfC("st_recipe_get")]
  public object Get(string key) { return ScaleTrain.Json.Scalar(Value(Given(key, "key"))); }

  /// <summary>Every key, with its default where it was not set, as JSON.</summary>
  [OfC("st_recipe_json")]
  public string Json() {
    lock (Safe) return native.json();
  }

  /// <summary>JSON: each key's name, type, default, allowed range and help.</summary>
  [OfC("st_recipe_keys")]
  public static string Keys() {
    Loader.Require();
    return Native.Recipe.keys();
  }

  private string Value(string key) {
    lock (Safe) return native.value(key);
  }

  private double Real(string key) { return Of<double>(key, Get(key)); }
  private long Integer(string key) { return Of<long>(key, Get(key)); }
  private bool Flag(string key) { return Of<bool>(key, Get(key)); }
  private string Word(string key) { return Of<string>(key, Get(key)); }

  private static T Of<T>(string key, object value) {
    if (value is long && typeof(T) == typeof(double)) value = (double)(long)value;
    if (value is T) return (T)value;
    throw new WrongStateException("Recipe: " + key + " is " + ScaleTrain.Json.Of(value) + " now; Get(\"" + key + "\") tells any value");
  }
}

}
