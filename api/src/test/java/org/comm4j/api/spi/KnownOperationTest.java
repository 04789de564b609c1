package org.comm4j.api.spi;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.ref.WeakReference;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.Operation;
import org.junit.jupiter.api.Test;

class KnownOperationTest {
  private static final int COLLECTIONS = 50;

  private final KnownOperation known = new KnownOperation();

  @Test
  void isKnown_theOneNoted_byIdentity() {
    CommData data = CommData.of(new float[3]);
    Operation operation = new Collective.Broadcast(data, 0);
    Operation equal = new Collective.Broadcast(data, 0);

    boolean before = known.isKnown(operation);
    known.note(operation);

    assertThat(before).isFalse();
    assertThat(known.isKnown(operation)).isTrue();
    assertThat(known.isKnown(equal)).isFalse();
  }

  @Test
  void note_newOnesAllTheTime_notesFewOfThem() {
    for (int i = 0; i < 10_000; i++) {
      known.note(operation());
    }

    assertThat(isNoted(operation())).isFalse();
  }

  @Test
  void isKnown_oneAgainAfterManyOthers_soon() {
    for (int i = 0; i < 10_000; i++) {
      known.note(operation());
    }
    Operation again = operation();
    int calls = 0;
    while (!known.isKnown(again)) {
      known.note(again);
      calls++;
    }

    assertThat(calls).isLessThanOrEqualTo(1025);
  }

  @Test
  void note_othersInTurnWithOneThatComesAgain_keepsThatOne() {
    Operation again = operation();
    known.note(again);
    for (int i = 0; i < 1000; i++) {
      assertThat(known.isKnown(again)).isTrue();
      for (int other = 0; other < 64; other++) {
        known.note(operation());
      }
    }
  }

  @Test
  void note_keepsNothingAlive() {
    WeakReference<float[]> array = noteOneOf(new float[1000]);

    for (int i = 0; i < COLLECTIONS && array.get() != null; i++) {
      System.gc();
    }

    assertThat(array.get()).isNull();
  }

  private WeakReference<float[]> noteOneOf(float[] array) {
    known.note(new Collective.Broadcast(CommData.of(array), 0));
    return new WeakReference<>(array);
  }

  private boolean isNoted(Operation operation) {
    known.note(operation);
    return known.isKnown(operation);
  }

  private static Operation operation() {
    return new Collective.Broadcast(CommData.of(new float[3]), 0);
  }
}
