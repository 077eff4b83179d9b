// On every page: a question before what cannot be undone, and parts that are read again when something has changed.
import { askBefore } from "./tickler/confirm.js";
import { forgetNotice } from "./tickler/notice.js";
import { keepUp } from "./refresh.js";

askBefore(document);
forgetNotice();
keepUp();
