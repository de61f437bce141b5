namespace ScaleTrain {

/// <summary>The training settings: <c>new Recipe { Batch = 64, Lr = 0.01 }</c>. The typed properties are generated from the library's table of
/// keys.</summary>
public sealed partial class Recipe : Handle {
  internal readonly Native.Recipe native;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>All defaults.</summary>
  public Recipe() {
    Loader.Require();
    native = new Native.Recipe();
  }

  /// <summary>Takes JSON text, a dictionary or an anonymous object: <c>new Recipe(new { batch = 64, lr = 0.01 })</c>. A DeepSpeed ds_config is
  /// accepted too. An unknown key is refused, and the error names the nearest one.</summary>
  [OfC("st_recipe_create")]
  public Recipe(object settings) {
    Loader.Require();
    native = new Native.Recipe(ScaleTrain.Json.OfOptions(Given(settings, "settings")));
  }

  /// <summary>Sets any key. The value is a bool, a number, a string, or an object that is converted to JSON.</summary>
  [OfC("st_recipe_set")]
  public void Set(string key, object value) { native.set(Given(key, "key"), ScaleTrain.Json.Of(value)); }

  /// <summary>The value of a key: a bool, a long, a double or a string; JSON text for lists and maps.</summary>
  [OfC("st_recipe_get")]
  public object Get(string key) { return ScaleTrain.Json.Scalar(Value(Given(key, "key"))); }

  /// <summary>All keys as JSON; keys that were not set have their defaults.</summary>
  [OfC("st_recipe_json")]
  public string Json() {
    lock (Safe) return native.json();
  }

  /// <summary>The name, type, default, allowed range and help of each key, as JSON.</summary>
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
    throw new WrongStateException("Recipe: " + key + " is " + ScaleTrain.Json.Of(value) + ", which has another type; use Get(\"" + key + "\")");
  }
}

}
