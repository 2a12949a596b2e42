/* In the place of glibc's file of this name, which includes one that only a cross compiler's
   package has. For `./dev cross syntax`. */
