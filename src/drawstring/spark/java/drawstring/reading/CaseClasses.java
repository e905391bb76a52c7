package drawstring.reading;

import java.lang.reflect.Method;
import scala.collection.immutable.Map;

/** Makes objects of Scala's case classes, which have more fields in some releases of Spark than in others. */
class CaseClasses {
    /** Calls the `apply` of a case class, with its defaults for arguments that are not given. */
    static Object create(Object companion, Object[] first, Map properties) throws Exception {
        Method[] methods = companion.getClass().getMethods();
        Method apply = null;
        for (int n = 0; n < methods.length; n++) {
            boolean longer = apply == null || methods[n].getParameterCount() > apply.getParameterCount();
            if (methods[n].getName().equals("apply") && longer) {
                apply = methods[n];
            }
        }
        Object[] all = new Object[apply.getParameterCount()];
        boolean used = properties == null;
        for (int n = 0; n < all.length; n++) {
            if (n < first.length) {
                all[n] = first[n];
            } else if (!used && apply.getParameterTypes()[n] == Map.class) {
                all[n] = properties;
                used = true;
            } else {
                all[n] = companion.getClass().getMethod("apply$default$" + (n + 1)).invoke(companion);
            }
        }
        return apply.invoke(companion, all);
    }
}
