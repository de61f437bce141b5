package org.scaletrain;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Which functions of the C ABI a method or constructor is. Their documentation is in {@code scaletrain/*.h}; a test finds what is missing.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.METHOD, ElementType.CONSTRUCTOR})
public @interface OfC {
  /** Names, such as {@code st_trainer_step}. */
  String[] value();
}
