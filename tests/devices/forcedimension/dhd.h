/* Prototypes of the Force Dimension SDK (3.14 and later, in C) for the functions that the driver calls. */

#include <stdbool.h>

int dhdErrorGetLast(void);
const char *dhdErrorGetLastStr(void);
void dhdGetSDKVersion(int *major, int *minor, int *release, int *revision);
int dhdGetDeviceCount(void);
int dhdOpenID(char ID);
int dhdClose(char ID);
int dhdGetSerialNumber(unsigned short *sn, char ID);
const char *dhdGetSystemName(char ID);
int dhdGetSystemType(char ID);
int dhdGetVersion(double *ver, char ID);
int dhdGetStatus(int status[], char ID);
int dhdGetPosition(double *px, double *py, double *pz, char ID);
int dhdConfigLinearVelocity(int ms, int mode, char ID);
int dhdGetLinearVelocity(double *vx, double *vy, double *vz, char ID);
int dhdSetForce(double fx, double fy, double fz, char ID);
int dhdEnableForce(bool val, char ID);
int dhdSetBrakes(bool val, char ID);
int dhdSetGravityCompensation(bool val, char ID);
int dhdSetEffectorMass(double mass, char ID);
unsigned int dhdGetButtonMask(char ID);
int dhdSetOutput(unsigned int output, char ID);
double dhdGetComFreq(char ID);
int dhdEnableExpertMode(void);
int dhdDisableExpertMode(void);
int dhdSetVelocityThreshold(unsigned int val, char ID);
int dhdGetVelocityThreshold(unsigned int *val, char ID);
int dhdSetWatchdog(unsigned char val, char ID);
int dhdGetWatchdog(unsigned char *val, char ID);
int dhdSetMaxForce(double f, char ID);
double dhdGetMaxForce(char ID);
int drdOpenID(char ID);
bool drdIsInitialized(char ID);
int drdAutoInit(char ID);
int drdStop(bool frc, char ID);
